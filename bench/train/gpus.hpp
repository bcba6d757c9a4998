#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

#include <troupe/options.hpp>

/// GPUs of benchmarks whose ranks may be more than they are.
namespace troupe::bench {

/// What each rank asks for; without GPUs the default.
inline RankOptions rank_options(int ranks, int gpus) {
  RankOptions each;
  if (gpus > 0) each.gpus = std::min(1.0, static_cast<double>(gpus) / ranks);
  return each;
}

/// In a rank that has a GPU with others, before NCCL is used: NCCL takes them for ranks of different
/// hosts then, which it connects by sockets. It refuses two ranks of one host on one GPU.
inline void share_gpu(int rank) {
  ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

}  // namespace troupe::bench
