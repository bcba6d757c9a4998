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

/// By what a learning rate that suits one rank is multiplied where N ranks train. With N ranks a
/// step sees N times the rows of one rank's batch.
enum class LearningRateScaling : std::uint8_t {
  None,
  Linear,  ///< N (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 2.1): for SGD
  /// The square root of N (Krizhevsky, "One weird trick for parallelizing convolutional neural
  /// networks", 2014, section 5): for Adam and its like.
  SquareRoot,
};

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
  /// What Context::prepare(optimizer) does to the learning rates of the optimizer's groups. A run
  /// that continues from a checkpoint with another number of ranks has the checkpoint's rates,
  /// multiplied by what the two runs differ in.
  LearningRateScaling scale_learning_rates = LearningRateScaling::None;
  /// Threads of LibTorch's operations in this process. -1: in a rank as many as its CPUs, at least
  /// one, and one in a run in the driver's process; 0: unchanged.
  int threads = -1;

  /// The options as they travel to the ranks.
  operator ContextSettings() const;
};

}  // namespace troupe::train

template <>
struct troupe::EnumRange<troupe::train::LearningRateScaling> {
  static constexpr auto first = troupe::train::LearningRateScaling::None;
  static constexpr auto last = troupe::train::LearningRateScaling::SquareRoot;
};

template <>
struct troupe::EnumRange<troupe::train::ContextOptions::Backend> {
  static constexpr auto first = troupe::train::ContextOptions::Backend::Auto;
  static constexpr auto last = troupe::train::ContextOptions::Backend::Nccl;
};
