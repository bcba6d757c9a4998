#pragma once

#include <vector>

#include <c10/core/Device.h>

#include <troupe/train/context_options.hpp>

#include "parallel/buckets.hpp"
#include "parallel/parameter_names.hpp"
#include "zero/cut_bucket.hpp"
#include "zero/optimizer/optimizer_parts.hpp"

namespace torch::optim {
class Optimizer;
}

/// What is looked at before ZeRO cuts a model or an optimizer among the ranks.
namespace troupe::train {

/// Throws std::invalid_argument for a stage that there is not, and for offloading what the stage
/// does not cut.
void check(const ZeroOptions& options);

/// Whether prepared optimizers update parts of the parameters, or copies of them.
bool has_parts(const ContextOptions& options);

/// Throws std::invalid_argument, naming it, where one of these parameters is in one of the models:
/// two would cut its gradient.
void refuse_shared(const std::vector<NamedTensor>& parameters, const std::vector<CutModel>& models);

/// The optimizer's parameters with their names. `names`: of the parameters of all prepared models.
/// Throws std::invalid_argument for a parameter that the optimizer has twice, that has no name and
/// so may differ between the ranks, or that is not on `device`.
std::vector<std::vector<NamedTensor>> named_groups(const torch::optim::Optimizer& optimizer,
                                                   const ParameterNames& names, c10::Device device);

/// nullptr: the optimizer updates the parameters, and has its whole state. Throws std::logic_error
/// where it was not prepared, though has_parts().
OptimizerParts* parts_of(const torch::optim::Optimizer& optimizer, const ContextOptions& options);

}  // namespace troupe::train
