#pragma once

#include <string>
#include <vector>

#include "parallel/parameter_names.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::train {

/// What a checkpoint calls the parameters of each group of an optimizer: by their names, and by
/// "#<group>.<number>" where they have none. A name that the optimizer has twice, of two models,
/// has that behind it.
std::vector<std::vector<std::string>> parameter_labels(const torch::optim::Optimizer& optimizer,
                                                       const ParameterNames& names);

/// Whether the label has a name.
inline bool is_named(const std::string& label) { return !label.starts_with('#'); }

}  // namespace troupe::train
