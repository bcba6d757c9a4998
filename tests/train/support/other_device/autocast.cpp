// Autocast on other_device(), of the operators that small nets need: those that CUDA's autocast has
// compute in the smaller type (torch::nn::Linear's), or in float32 (the loss).
#include "support/other_device.hpp"

#include <cstdint>

#include <ATen/autocast_mode.h>
#include <ATen/core/Reduction.h>
#include <torch/library.h>

namespace {

constexpr auto kDevice = at::kHPU;
using at::autocast::cached_cast;
using c10::impl::ExcludeDispatchKeyGuard;

at::Tensor addmm(const at::Tensor& bias, const at::Tensor& x, const at::Tensor& weight,
                 const at::Scalar& beta, const at::Scalar& alpha) {
  const ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastHPU);
  const auto type = at::autocast::get_autocast_dtype(kDevice);
  return at::addmm(cached_cast(type, bias, kDevice), cached_cast(type, x, kDevice),
                   cached_cast(type, weight, kDevice), beta, alpha);
}

/// The mean, without LibTorch's operator, which warns on this device.
at::Tensor mse_loss(const at::Tensor& x, const at::Tensor& target, std::int64_t reduction) {
  TORCH_CHECK(reduction == at::Reduction::Mean, "other_device() has no other reduction here");
  const ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastHPU);
  return (cached_cast(at::kFloat, x, kDevice) - cached_cast(at::kFloat, target, kDevice))
      .square()
      .mean();
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastHPU, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastHPU, library) {
  library.impl("addmm", addmm);
  library.impl("mse_loss", mse_loss);
}
