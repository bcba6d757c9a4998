#pragma once

#include <memory>
#include <vector>

#include "checkpoint/saving/saver.hpp"
#include "prepared/context_rank.hpp"
#include "prepared/models.hpp"
#include "prepared/optimizers.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

/// What a program hands to Context::checkpoint(), in the order given.
struct CheckpointContents {
  std::vector<std::shared_ptr<torch::nn::Module>> models;
  std::vector<const torch::optim::Optimizer*> optimizers;
  std::vector<OptimizerParts*> parts;  ///< of each optimizer, as PreparedOptimizers::parts_of()
};

/// What this rank writes of a checkpoint: its pieces of what is cut among the ranks, on rank 0 also
/// what all ranks have, and the epoch and the loss scale. A collective with master weights.
/// `copies`: as RankPart's. Throws what RankPart's functions throw.
RankShare share_of_rank(const ContextRank& here, const PreparedModels& models,
                        const PreparedOptimizers& optimizers, const CheckpointContents& contents,
                        int epoch, bool copies);

}  // namespace troupe::train
