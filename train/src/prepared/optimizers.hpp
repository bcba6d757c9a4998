#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/prepared_optimizer.hpp>

#include "checkpoint/restoring/restoring.hpp"
#include "precision/gradient_scaling.hpp"
#include "precision/loss_scaler.hpp"
#include "prepared/communicators_on_demand.hpp"
#include "prepared/context_rank.hpp"
#include "prepared/models.hpp"
#include "zero/optimizer/optimizer_kind.hpp"
#include "zero/optimizer/optimizer_parts.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

/// The optimizers that a context has prepared, and the loss scale that they share.
///
/// The program owns the optimizers. Each of them owns its OptimizerParts and its OptimizerScaling,
/// of which this class knows those that still live. This class shares the LossScaler with the
/// scalings.
///
/// 1. An optimizer that is prepared after n others loads optimizer n of the checkpoint from which
///    the run continues. One that is refused takes no number.
/// 2. All ranks prepare as many optimizers with master weights, and with_masters() has the same
///    ones on all ranks, although an optimizer may end on one rank earlier than on another.
/// 3. A loss is scaled only while an optimizer lives that divides the loss's gradients.
///
/// Lives in one rank's process; used by the context's thread.
class PreparedOptimizers {
 public:
  /// `restoring`: nullptr where the run does not continue from a checkpoint. `scaler`: nullptr
  /// where losses are not scaled.
  PreparedOptimizers(const ContextRank& here, CommunicatorsOnDemand& communicators,
                     PreparedModels& models, Restoring* restoring,
                     std::shared_ptr<LossScaler> scaler);

  /// What Context::prepare() does for an optimizer, of which it says when it is a collective.
  detail::Preparation prepare(torch::optim::Optimizer& optimizer);
  /// As Context::scaled().
  at::Tensor scaled(const at::Tensor& loss);
  /// As Context::clip_grad_norm().
  double clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm);

  /// nullptr where losses are not scaled.
  const LossScaler* scaler() const { return scaler_.get(); }
  /// The parts of each; nullptr for one that updates the parameters themselves. Throws
  /// std::logic_error for an optimizer that is not what prepare() returned, with ZeRO, master
  /// weights or a loss scale.
  std::vector<OptimizerParts*> parts_of(
      const std::vector<const torch::optim::Optimizer*>& optimizers) const;
  /// The parts of the optimizers with master weights that live on all ranks. A collective.
  std::vector<std::shared_ptr<OptimizerParts>> with_masters() const;

 private:
  void scale_rates(torch::optim::Optimizer& optimizer);
  void restore_options(torch::optim::Optimizer& optimizer, std::size_t number);
  std::shared_ptr<OptimizerParts> cut(const OptimizerKind& kind,
                                      torch::optim::Optimizer& optimizer);

  const ContextRank& here_;
  CommunicatorsOnDemand& communicators_;
  PreparedModels& models_;
  Restoring* const restoring_;
  const std::shared_ptr<LossScaler> scaler_;
  std::size_t prepared_ = 0;                                 // so far
  std::vector<std::weak_ptr<OptimizerScaling>> scalings_;    // of all, with a loss scale
  std::vector<std::weak_ptr<OptimizerParts>> have_masters_;  // as many on each rank
};

}  // namespace troupe::train
