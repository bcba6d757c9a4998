#include "precision/clip.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <torch/optim/optimizer.h>

namespace troupe::train {

std::vector<at::Tensor> gradients_of(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> gradients;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  return gradients;
}

double sum_of_squares(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (const auto& gradient : gradients) {
    const auto norm = at::linalg_vector_norm(gradient, 2, {}, false, at::kDouble).item<double>();
    squares += norm * norm;
  }
  return squares;
}

double clip(const std::vector<at::Tensor>& gradients, double norm, double max_norm) {
  const at::NoGradGuard no_grad;
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;
  for (const auto& gradient : gradients) gradient.mul_(factor);
  return norm;
}

}  // namespace troupe::train
