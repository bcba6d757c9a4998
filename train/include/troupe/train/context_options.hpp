#pragma once

#include <chrono>
#include <cstdint>

#include <troupe/detail/archive.hpp>
#include <troupe/train/checkpoint.hpp>
#include <troupe/train/data_parallel.hpp>
#include <troupe/train/mixed_precision.hpp>
#include <troupe/train/zero.hpp>
#include <troupe/trainable.hpp>

namespace troupe::train {

/// Options of each rank's Context. Given to a run (RunOptions::context) or to a sweep (`.each =
/// {.context = train::ContextOptions{.threads = 2}}`) they apply to the Context with which the
/// function is called, on every rank. A Context that the program makes itself, from a Member and
/// options, has those options.
struct ContextOptions {
  enum class Backend : std::uint8_t { Auto, Host, Nccl };
  /// Auto: NCCL if device() is a GPU, else host.
  Backend backend = Backend::Auto;
  std::chrono::milliseconds timeout =
      std::chrono::minutes(30);  ///< of each collective, and of a checkpoint to be written
  /// How long a collective waits before the log names the missing ranks; 0: never. As
  /// HostOptions::warn_after.
  std::chrono::milliseconds warn_after = std::chrono::seconds(30);
  DataParallelOptions data_parallel = {};
  ZeroOptions zero = {};
  MixedPrecision mixed_precision = {};
  CheckpointOptions checkpoints = {};
  /// Threads of LibTorch's operations in this process. -1: in a rank as many as its CPUs, at least
  /// one, and one in a run in the driver's process; 0: unchanged.
  int threads = -1;

  /// The options as they travel to the ranks.
  operator ContextSettings() const;
};

}  // namespace troupe::train

template <>
struct troupe::EnumRange<troupe::train::ContextOptions::Backend> {
  static constexpr auto first = troupe::train::ContextOptions::Backend::Auto;
  static constexpr auto last = troupe::train::ContextOptions::Backend::Nccl;
};
