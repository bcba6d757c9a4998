#pragma once

#include <functional>
#include <memory>
#include <typeinfo>
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

/// What becomes of an optimizer's gradients before its step where their loss was scaled.
class GradientScaling {
 public:
  virtual ~GradientScaling() = default;
  /// Divides the gradients by the scale of their loss, where that was not done since the last step.
  /// -> whether all of them are finite, on every rank. A collective.
  virtual bool unscale(torch::optim::Optimizer& optimizer) = 0;
  /// The step that they were divided for is over, made or left out; or they were dropped without
  /// one.
  virtual void end_step() = 0;
};

/// What preparing adds to an optimizer.
struct Preparation {
  std::shared_ptr<OptimizerShards> shards =
      {};  ///< nullptr: the optimizer updates the parameters themselves
  std::shared_ptr<GradientScaling> scaling = {};  ///< nullptr: the loss is not scaled
};

/// What a prepared optimizer is, whatever its type.
class AnyPreparedOptimizer {
 public:
  explicit AnyPreparedOptimizer(Preparation preparation) : preparation_(std::move(preparation)) {}
  virtual ~AnyPreparedOptimizer() = default;
  AnyPreparedOptimizer(AnyPreparedOptimizer&&) = default;
  AnyPreparedOptimizer& operator=(AnyPreparedOptimizer&&) = default;

  /// Of the optimizer that was prepared.
  virtual const std::type_info& plain_type() const = 0;
  OptimizerShards* shards() const { return preparation_.shards.get(); }
  GradientScaling* scaling() const { return preparation_.scaling.get(); }

 private:
  Preparation preparation_;
};

/// Throws std::logic_error: what torch::save would write has no state that torch::load finds.
[[noreturn]] void refuse_to_save_part();

/// The loss of a step, computed with gradients; undefined without a closure.
at::Tensor loss_of(const std::function<at::Tensor()>& closure);

/// Parameters have changed: what autocast has converted of them before is not used again on this
/// thread.
void forget_converted();

}  // namespace detail

/// What Context::prepare(optimizer) returns: an optimizer of the same type, whose step() updates
/// one part of the parameters where ContextOptions::zero says so, and is left out where the loss
/// was scaled and a gradient is not finite. Keep it as `auto`: a plain O that is initialized with
/// it does neither, and Context::checkpoint refuses that O with ZeRO and with master weights, of
/// which it has none.
///
/// Used by the thread of the Context that prepared it, and not after that Context has ended.
template <class O>
class PreparedOptimizer final : public O, public detail::AnyPreparedOptimizer {
 public:
  PreparedOptimizer(O optimizer, detail::Preparation preparation)
      : O(std::move(optimizer)), AnyPreparedOptimizer(std::move(preparation)) {}

  const std::type_info& plain_type() const override { return typeid(O); }

  /// A collective with ZeRO, and with MixedPrecision::Type::Float16: every rank calls it, after the
  /// backward whose gradients it applies. Throws the errors of the communicator; std::logic_error,
  /// naming the parameter, if the optimizer has other parameters than when it was prepared, or one
  /// has another size, type or device; std::invalid_argument for a sparse gradient. The closure
  /// runs first, and once.
  ///
  /// With Float16 it divides the gradients by the scale of their loss, and updates nothing where
  /// one is not finite on some rank: Context::skipped_steps() counts these. Throws std::logic_error
  /// if no loss was scaled since the last step.
  at::Tensor step(std::function<at::Tensor()> closure = nullptr) override {
    if (shards() == nullptr && scaling() == nullptr) {
      auto loss = O::step(std::move(closure));
      detail::forget_converted();
      return loss;
    }
    auto loss = detail::loss_of(closure);
    if (scaling() == nullptr || scaling()->unscale(*this)) {
      const auto update = [this] { O::step(nullptr); };
      if (shards() != nullptr)
        shards()->step(*this, update);
      else
        update();
    }
    if (scaling() != nullptr) scaling()->end_step();
    detail::forget_converted();
    return loss;
  }

  /// As O's. Gradients that clip_grad_norm() has divided may be dropped by it without a step().
  void zero_grad(bool set_to_none = true) {
    if (scaling() != nullptr) scaling()->end_step();
    O::zero_grad(set_to_none);
  }

  /// With ZeRO or master weights throws std::logic_error, because a rank has a part of the state
  /// alone, or values that an O has not: use Context::checkpoint.
  void save(torch::serialize::OutputArchive& archive) const override {
    if (shards() != nullptr) detail::refuse_to_save_part();
    O::save(archive);
  }
};

}  // namespace troupe::train
