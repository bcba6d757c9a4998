#pragma once

#include <cstdint>
#include <memory>

#include <troupe/train/communicator.hpp>
#include <troupe/train/prepared_optimizer.hpp>

#include "precision/loss_scaler.hpp"
#include "zero/optimizer/optimizer_parts.hpp"

namespace troupe::train {

/// Brings the gradients of one prepared optimizer back from the scale of their loss, before it
/// steps.
///
/// 1. Gradients are divided once between two steps, whoever asks first.
/// 2. All ranks make the same step, or none does: what one finds counts for all.
///
/// Lives in one rank's process; used by one thread.
class OptimizerScaling final : public detail::GradientScaling {
 public:
  /// `parts`: with ZeRO or master weights; nullptr: the gradients are those of the parameters. All
  /// outlive this.
  OptimizerScaling(std::shared_ptr<LossScaler> scaler, std::shared_ptr<OptimizerParts> parts,
                   Communicator& control);

  /// Throws std::logic_error if no loss was scaled since the last step, or one was since the
  /// gradients were divided.
  bool unscale(torch::optim::Optimizer& optimizer) override;
  void end_step() override;

 private:
  const std::shared_ptr<LossScaler> scaler_;
  const std::shared_ptr<OptimizerParts> parts_;
  Communicator& control_;
  std::int64_t losses_ = 0;       // when the last step ended
  std::int64_t divided_at_ = -1;  // losses when the gradients were divided; -1: not since then
  bool are_finite_ = true;        // once divided
};

/// Throws std::logic_error where the optimizer is not what Context::prepare returned.
detail::GradientScaling& scaling_of(const torch::optim::Optimizer& optimizer);

}  // namespace troupe::train
