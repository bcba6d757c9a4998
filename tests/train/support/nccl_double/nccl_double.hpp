#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>

#include <cuda_runtime_api.h>
#include <nccl.h>

/// A test double of NCCL and of the CUDA runtime, which a test binary is linked with in place of
/// both: it defines the functions that Troupe's communicator and its tests call, with the
/// signatures of the official headers. Never installed.
///
/// * Device memory is main memory that is counted; NCCL's functions refuse any other.
/// * A stream is a thread that does what was enqueued, in that order, while the host goes on; what
///   waits for no event can come too early. cudaFree waits for all streams, as CUDA's does.
/// * A communicator is non-blocking: every call begins and returns ncclInProgress, and
///   ncclCommGetAsyncError tells when it is done. Ranks are processes, which are connected by
///   sockets of the abstract namespace: nothing is left behind by one that is killed.
/// * A rank that has died or aborted is not noticed by the others: their operations do not end. So
///   it is with NCCL where ranks share memory or NVLink.
/// * What NCCL leaves undefined is an error here: calls of one operation that differ between ranks,
///   a call while another is in progress, a second stream.
/// * A process that was forked from one that has used a device cannot use any, as with CUDA.
namespace nccl_double {

using std::chrono::milliseconds;

/// One operation goes wrong.
struct Fault {
  enum class Shows {
    AsResult,     ///< of the call itself
    WhileRunning  ///< in ncclCommGetAsyncError; the operation never completes
  };
  ncclResult_t result = ncclSuccess;  ///< success: there is no fault
  Shows shows = Shows::AsResult;
  int after = 0;          ///< so many operations go well before, counted from behave()
  std::string text = {};  ///< what ncclGetLastError says
};

/// How the devices and NCCL of this process behave. The first is all well.
struct Behaviour {
  int devices = 1;
  /// An allocation that would bring a process beyond is cudaErrorMemoryAllocation.
  std::size_t memory = std::numeric_limits<std::size_t>::max();
  /// Other than success: every call of CUDA fails so from now on, as after an illegal address.
  cudaError_t device_error = cudaSuccess;
  milliseconds copies_take{0};      ///< each, on the default stream
  milliseconds init_takes{0};       ///< besides what waits for the other ranks
  milliseconds enqueuing_takes{0};  ///< while the communicator is in progress
  milliseconds operations_take{0};  ///< each, on its stream, before it moves anything
  /// Each waits, on its stream, until so many were called since behave(): who waits for one before
  /// that waits for ever.
  int operations_await = 0;
  bool init_ends = true;
  bool operations_end = true;
  bool finalize_ends = true;
  bool notices_lost_ranks = false;  ///< as ncclRemoteError
  bool takes_any_memory = false;    ///< not only what cudaMalloc gave
  Fault fault = {};
};

/// From any thread. Ranks that are forked begin with their parent's.
void behave(const Behaviour& how);
Behaviour behaviour();

/// How many operations this process has called since behave(); a group is one.
int operations();
/// How many calls of CUDA since behave() have had the CPU wait for a device: those that
/// synchronize, and cudaMemcpy and cudaFree.
int waits();

/// What this process has allocated of device memory, in bytes.
std::size_t device_bytes();
/// How many communicators this process has that were neither aborted nor destroyed.
int communicators();

}  // namespace nccl_double
