#pragma once

namespace troupe::testing {

/// Whether this process sees a CUDA device. Asked in a child: a process that has touched CUDA must
/// not fork ranks that use it.
bool sees_gpu();

/// Says so, and that the test is skipped, where this process sees none.
bool skipped_without_gpu();

/// In a rank, before it makes an NCCL communicator, so that several of them have one GPU: NCCL
/// refuses two ranks of one host on one GPU. Told that they are on different hosts, it connects
/// them by sockets.
void share_one_gpu(int rank);

}  // namespace troupe::testing
