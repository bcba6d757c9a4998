#include "precision/gradient_scaling.hpp"

#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include <torch/optim/optimizer.h>

#include "precision/clip.hpp"
#include "precision/divided.hpp"

namespace troupe::train {

OptimizerScaling::OptimizerScaling(std::shared_ptr<LossScaler> scaler,
                                   std::shared_ptr<OptimizerParts> parts, Communicator& control)
    : scaler_(std::move(scaler)), parts_(std::move(parts)), control_(control) {}

bool OptimizerScaling::unscale(torch::optim::Optimizer& optimizer) {
  const auto losses = scaler_->losses();
  if (divided_at_ == losses) return are_finite_;
  if (divided_at_ >= 0) {
    throw std::logic_error(
        "a loss was scaled after clip_grad_norm() had divided the gradients of the losses before: "
        "clip once all losses of a step have been through backward(), and then call step(), which "
        "leaves itself out where they are not finite, or zero_grad() of the prepared optimizer");
  }
  if (losses == losses_) {
    throw std::logic_error(
        "no loss was scaled since the last step or zero_grad() of this optimizer, and with "
        "MixedPrecision::Type::Float16 its gradients are divided by the loss scale: write "
        "ctx.scaled(loss).backward()");
  }
  if (parts_ && parts_->divides())
    are_finite_ = parts_->divide_gradients(scaler_->scale());
  else
    are_finite_ = divide(gradients_of(optimizer), scaler_->scale());
  divided_at_ = losses;
  std::array<std::int64_t, 1> overflows{are_finite_ ? 0 : 1};
  if (control_.size() > 1) control_.all_reduce(std::span<std::int64_t>(overflows), ReduceOp::Max);
  are_finite_ = overflows[0] == 0;
  return are_finite_;
}

void OptimizerScaling::end_step() {
  if (divided_at_ < 0) return;
  if (parts_) parts_->drop_copies();
  losses_ = scaler_->losses();
  divided_at_ = -1;
  scaler_->stepped(are_finite_);
}

detail::GradientScaling& scaling_of(const torch::optim::Optimizer& optimizer) {
  const auto* prepared = dynamic_cast<const detail::AnyPreparedOptimizer*>(&optimizer);
  if (prepared != nullptr && prepared->scaling() != nullptr) return *prepared->scaling();
  throw std::logic_error(
      "with MixedPrecision::Type::Float16 an optimizer must be what prepare() returned, as its "
      "gradients are divided by the loss scale; keep that as `auto optimizer = ctx.prepare(...)`");
}

}  // namespace troupe::train
