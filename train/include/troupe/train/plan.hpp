#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/train/data_parallel.hpp>
#include <troupe/train/mixed_precision.hpp>
#include <troupe/train/zero.hpp>

namespace torch::nn {
class Module;
}

/// Whether a model can be trained on the machines that there are, before anybody tries: the memory
/// that each way to share the work takes, and which way to use. Sizes are in bytes, 1 GB is 10^9.
namespace troupe::train {

/// What the memory for a model depends on. It comes from a model by size_of(), or from numbers that
/// a paper gives: `{.trained = 13'000'000'000}`.
struct ModelSize {
  /// Elements of the trained parameters, as if all were of float32: one of float64 counts as two.
  std::uint64_t trained = 0;
  /// Elements of the largest trained parameter, which is whole while it is used. 0: not known, and
  /// taken to be that of a transformer with so many parameters, whose feed-forward layers are four
  /// times as wide as the others.
  std::uint64_t largest = 0;
  std::uint64_t other_bytes = 0;  ///< of frozen parameters and buffers, which each rank has whole
};

/// The size of a model in memory or on LibTorch's device `meta`. A parameter with several names
/// counts once.
ModelSize size_of(const torch::nn::Module& model);

/// Where a model is to be trained, and how.
struct PlanOptions {
  /// Auto: GPUs where `device_memory` is given or this machine has a GPU, else CPUs.
  enum class Device : std::uint8_t { Auto, Gpu, Cpu };

  int ranks = 1;
  int ranks_per_node = 0;  ///< 0: all of them are on one node
  Device device = Device::Auto;
  /// What a rank's device has. 0: the memory of this machine's first GPU, or on CPUs the rank's
  /// share of its node's main memory.
  std::uint64_t device_memory = 0;
  /// What each node has. 0: the main memory of this machine, or the limit of this process's cgroup,
  /// also where `device_memory` is that of another machine.
  std::uint64_t main_memory = 0;
  /// What a rank's device needs besides: activations, workspaces of libraries, CUDA itself. 0: a
  /// tenth of `device_memory`.
  std::uint64_t activations = 0;
  /// What the optimizer keeps for each element besides its value: 8 for Adam and AdamW (12 with
  /// amsgrad), 4 for SGD with momentum, 0 for SGD without.
  int optimizer_bytes = 8;
  MixedPrecision mixed_precision = {};
  DataParallelOptions data_parallel = {};
};

/// What one rank has on its device, or in main memory.
struct MemoryUse {
  std::uint64_t parameters = 0;  ///< with frozen ones and buffers
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;  ///< the optimizer's state, and master weights
  /// The most that is there for a while in each step: buckets, gradients in float32, temporaries.
  std::uint64_t passing = 0;
  std::uint64_t total() const { return parameters + gradients + optimizer + passing; }
};

/// One way to share the work, and what a rank needs for it.
struct PlannedStrategy {
  ZeroOptions zero;
  MemoryUse device;  ///< without activations
  MemoryUse main;    ///< nothing on CPUs, where all of it is in `device`
  bool fits = false;
};

struct Plan {
  ModelSize model;
  PlanOptions options;  ///< with what this machine and the defaults have given
  /// From the fastest to the one that needs the least of the device: ZeRO's stages 0 to 3, and on
  /// GPUs those with the optimizer in main memory, and with the parameters there too. On one rank
  /// nothing can be cut: stage 0, and on a GPU stage 1 with the optimizer in main memory.
  std::vector<PlannedStrategy> strategies;
  /// What each rank needs of main memory while the model is made and prepared.
  /// PlannedStrategy::fits does not look at it.
  std::uint64_t making = 0;
  /// The first of `strategies` that fits; nullopt: none does, and `advice` says what would.
  std::optional<std::size_t> recommended;
  /// Sentences that say what to use and why, or what is missing and how many ranks are enough.
  std::string advice;

  /// The strategies as a table, and the advice, for people.
  std::string text() const;
};

/// Predicts what training takes on each rank (Rajbhandari et al., "ZeRO: Memory Optimizations
/// Toward Training Trillion Parameter Models", SC 2020, section 5; Ren et al., "ZeRO-Offload",
/// USENIX ATC 2021), with the buckets and copies of this library. It makes nothing, needs no
/// cluster and does not initialize CUDA, so a driver may call it before it starts a gang. A driver
/// gives numbers: to make a model may start threads of LibTorch, and such a process is not forked.
///
///     const auto plan = train::plan({.trained = 7'000'000'000}, {.ranks = 8});
///     std::puts(plan.text().c_str());
///     if (!plan.recommended) return 1;
///     const auto zero = plan.strategies[*plan.recommended].zero;
///     train::run<fit>(config, {.workers = 8, .context = {.zero = zero}});
///
/// Throws std::invalid_argument for numbers that cannot be, such as no rank or no trained
/// parameter, and for master weights with Type::Float32.
Plan plan(const ModelSize& model, const PlanOptions& options);
Plan plan(const torch::nn::Module& model, const PlanOptions& options);

}  // namespace troupe::train
