#include "zero/moving.hpp"

#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

namespace troupe::train {
namespace {

/// Takes the values of a module's trained parameters away as long as it lives.
class WithoutValues {
 public:
  explicit WithoutValues(const torch::nn::Module& module) {
    for (const auto& parameter : module.parameters()) {
      if (!parameter.requires_grad() || parameter.numel() == 0) continue;  // as one seen before is
      taken_.push_back({parameter, parameter.variable_data()});
      taken_.back().parameter.set_data(at::empty({0}, parameter.options().requires_grad(false)));
    }
  }
  ~WithoutValues() {
    for (auto& [parameter, values] : taken_) parameter.set_data(values);
  }
  WithoutValues(const WithoutValues&) = delete;
  WithoutValues& operator=(const WithoutValues&) = delete;

 private:
  struct Taken {
    at::Tensor parameter;
    at::Tensor values;
  };
  std::vector<Taken> taken_;
};

}  // namespace

void move_all_but_trained(torch::nn::Module& module, c10::Device device) {
  const at::NoGradGuard no_grad;
  const WithoutValues trained(module);
  module.to(device);
}

}  // namespace troupe::train
