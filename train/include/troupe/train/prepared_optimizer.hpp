#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
}
namespace torch::serialize {
class OutputArchive;
}

namespace troupe::train {
namespace detail {

/// The parts into which the ranks have cut an optimizer's parameters.
class OptimizerShards {
 public:
  virtual ~OptimizerShards() = default;
  /// Runs `update`, which is the optimizer's own step, for the part of this rank, and gets the
  /// others' parts. A collective.
  virtual void step(torch::optim::Optimizer& optimizer, const std::function<void()>& update) = 0;
};

/// What a prepared optimizer is, whatever its type.
class ShardedOptimizer {
 public:
  explicit ShardedOptimizer(std::shared_ptr<OptimizerShards> shards) : shards_(std::move(shards)) {}
  /// nullptr: the optimizer has its whole state.
  OptimizerShards* shards() const { return shards_.get(); }

 private:
  std::shared_ptr<OptimizerShards> shards_;
};

/// Throws std::logic_error: what torch::save would write has no state that torch::load finds.
[[noreturn]] void refuse_to_save_part();

/// The loss of a step, computed with gradients; undefined without a closure.
at::Tensor loss_of(const std::function<at::Tensor()>& closure);

}  // namespace detail

/// What Context::prepare(optimizer) returns: an optimizer of the same type, whose step() updates one
/// part of the parameters where ContextOptions::zero says so. Keep it as `auto`: a plain O that is
/// initialized with it updates all parameters on every rank, and Context::checkpoint refuses that O.
///
/// Used by the thread of the Context that prepared it, and not after that Context has ended.
template <class O>
class PreparedOptimizer final : public O, public detail::ShardedOptimizer {
 public:
  PreparedOptimizer(O optimizer, std::shared_ptr<detail::OptimizerShards> shards)
      : O(std::move(optimizer)), ShardedOptimizer(std::move(shards)) {}

  /// A collective with ZeRO: every rank calls it, after the backward whose gradients it applies.
  /// Throws the errors of the communicator; std::logic_error, naming the parameter, if the optimizer
  /// has other parameters than when it was prepared, or one has another size, type or device;
  /// std::invalid_argument
  /// for a sparse gradient. The closure runs first, and once.
  at::Tensor step(std::function<at::Tensor()> closure = nullptr) override {
    if (shards() == nullptr) return O::step(std::move(closure));
    auto loss = detail::loss_of(closure);
    shards()->step(*this, [this] { O::step(nullptr); });
    return loss;
  }

  /// With ZeRO throws std::logic_error, because a rank has a part of the state alone: use
  /// Context::checkpoint.
  void save(torch::serialize::OutputArchive& archive) const override {
    if (shards() != nullptr) detail::refuse_to_save_part();
    O::save(archive);
  }
};

}  // namespace troupe::train
