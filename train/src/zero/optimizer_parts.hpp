#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <troupe/train/communicator.hpp>
#include <troupe/train/prepared_optimizer.hpp>

#include "zero/flat.hpp"
#include "zero/optimizer_kind.hpp"

namespace troupe::train {

/// ZeRO, stage 1 (Rajbhandari et al., SC 2020, section 5.1): an optimizer whose parameters are cut
/// into as many parts as there are ranks. A rank keeps the state of its part alone and updates that;
/// an all-gather brings the others'.
///
/// Between steps the optimizer has the model's own parameters, so that zero_grad(), schedulers of the
/// learning rate and what else goes through its groups work as ever. In a step it has the pieces of
/// this rank's part in their place, and its state is that of the pieces.
///
/// 1. After a step of parameters that were the same on all ranks, all ranks have the same values of all parameters.
/// 2. State that the optimizer has for a whole parameter, as after a load, is cut before it is used.
/// 3. When a step ends, also by an exception, the optimizer has the model's parameters again.
///
/// Lives in one rank's process, for one optimizer, which may be moved; used by one thread.
class OptimizerParts final : public detail::OptimizerShards {
 public:
  /// `groups`: the optimizer's parameters with their names, each parameter once, and the same on all
  /// ranks in everything but the memory that they are in. The communicators
  /// outlive this: `communicator` for memory of the parameters' device, `control` for main memory.
  OptimizerParts(const OptimizerKind& kind, std::vector<std::vector<NamedTensor>> groups,
                 Communicator& communicator, Communicator& control);

  void step(torch::optim::Optimizer& optimizer, const std::function<void()>& update) override;

  /// On rank 0 the optimizer with the state of all ranks, in main memory, as a rank of a run without
  /// ZeRO has it; nullptr elsewhere. A collective. Rank 0 needs memory for the whole state.
  std::unique_ptr<torch::optim::Optimizer> whole(const torch::optim::Optimizer& optimizer);

 private:
  class PiecesInPlace;
  struct Part {
    std::size_t group;
    Flat flat;
  };
  struct Kept;

  void check_parameters(const torch::optim::Optimizer& optimizer) const;
  void cut_state(torch::optim::Optimizer& optimizer);
  void cut_state(torch::optim::Optimizer& optimizer, Flat& flat, std::size_t parameter);
  void gather_values();
  Kept kept_anywhere(const torch::optim::Optimizer& optimizer, const Flat& flat);
  at::Tensor part_of_state(const torch::optim::Optimizer& optimizer, const Flat& flat,
                           std::size_t tensor) const;
  at::Tensor collect(const at::Tensor& part);

  const OptimizerKind& kind_;
  const std::vector<std::vector<NamedTensor>> groups_;
  Communicator& communicator_;
  Communicator& control_;
  std::vector<Part> parts_;
};

}  // namespace troupe::train
