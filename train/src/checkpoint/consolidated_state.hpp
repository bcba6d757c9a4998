#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/context_options.hpp>

#include "checkpoint/directory.hpp"
#include "parallel/communicators.hpp"
#include "precision/master_weights.hpp"
#include "zero/flat.hpp"
#include "zero/gathering/gathering.hpp"
#include "zero/gathering/whole_copies.hpp"
#include "zero/optimizer/optimizer_parts.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

/// The master weights of these parameters, on rank 0; the last one of a parameter counts. The
/// values of models without an optimizer, which `initial` has, come before the master weights of
/// the `optimizers` that live on all ranks, and those come in the order of the optimizers. A
/// collective.
std::vector<MasterWeight> consolidated_masters(
    const std::vector<at::Tensor>& parameters, const InitialMasters& initial,
    const std::vector<std::weak_ptr<OptimizerParts>>& optimizers,
    const Communicators& communicators);

/// Models and optimizers whose values and state rank 0 has whole while this lives, also where each
/// rank holds a part of them: what a checkpoint is written from. The models of other ranks stay as
/// they are.
///
/// Lives in one rank's process; used by one thread. The two vectors and what they point to outlive
/// it.
class ConsolidatedState {
 public:
  using Models = std::vector<std::shared_ptr<torch::nn::Module>>;
  using Optimizers = std::vector<const torch::optim::Optimizer*>;

  ConsolidatedState(const Models& models, const Optimizers& optimizers, int rank);

  /// All parameters of the models.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// Rank 0 gets the state of all ranks, for optimizers that parts_of() has parts of. A collective.
  /// Throws the std::logic_error of parts_of().
  void gather_optimizers(const ContextOptions& options);
  /// Rank 0 gets the whole values of the parameters of these buckets. A collective.
  void gather_parameters(Gathering& gathering, const std::vector<std::shared_ptr<Flat>>& buckets);
  /// On rank 0, after gather_parameters(): parameters of a smaller type become ones of float32, as
  /// SavedInFloat32 has them.
  void show_masters(const std::vector<MasterWeight>& masters);

  /// On rank 0: writes the file of each model and of each optimizer. Throws troupe::Error.
  void save(const PendingCheckpoint& checkpoint) const;

 private:
  const Models& models_;
  const Optimizers& optimizers_;
  const int rank_;
  std::vector<at::Tensor> parameters_;
  // One for each optimizer; nullptr: the optimizer itself has its whole state.
  std::vector<std::unique_ptr<torch::optim::Optimizer>> whole_optimizers_;
  std::optional<WholeCopies> copies_;
  std::optional<SavedInFloat32> in_float32_;  // of the copies, so that it goes before them
};

}  // namespace troupe::train
