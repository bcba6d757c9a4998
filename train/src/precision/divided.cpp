#include "precision/divided.hpp"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

namespace troupe::train {

bool divide(const std::vector<at::Tensor>& gradients, double scale) {
  const at::NoGradGuard no_grad;
  auto left = gradients;
  bool are_finite = true;
  while (!left.empty()) {
    // LibTorch takes those of one type and device together.
    const auto type = left.front().scalar_type();
    const auto device = left.front().device();
    const auto others =
        std::stable_partition(left.begin(), left.end(), [&](const at::Tensor& each) {
          return each.scalar_type() == type && each.device() == device;
        });
    std::vector<at::Tensor> alike;
    for (auto at = left.begin(); at != others; ++at)
      alike.push_back(at->is_sparse() ? at->_values() : *at);
    left.erase(left.begin(), others);
    const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
    auto found = at::zeros({1}, options);
    at::_amp_foreach_non_finite_check_and_unscale_(alike, found, at::full({1}, 1 / scale, options));
    are_finite = are_finite && found.item<float>() == 0;
  }
  return are_finite;
}

}  // namespace troupe::train
