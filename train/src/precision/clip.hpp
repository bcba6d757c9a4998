#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
}

/// Clipping by the global norm, computed in float64 whatever the gradients are.
namespace troupe::train {

/// Those that the optimizer's parameters have.
std::vector<at::Tensor> gradients_of(const torch::optim::Optimizer& optimizer);

double sum_of_squares(const std::vector<at::Tensor>& gradients);

/// Scales gradients whose norm is `norm` so that it is at most `max_norm`, as torch's
/// clip_grad_norm_ does. -> `norm`
double clip(const std::vector<at::Tensor>& gradients, double norm, double max_norm);

}  // namespace troupe::train
