#include "parallel/averaging/narrowing.hpp"

#include <cstddef>
#include <limits>

#include <ATen/ops/clamp.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>

#include "collective/host/average.hpp"

namespace troupe::train {

void copy_narrowed(const at::Tensor& to, const at::Tensor& gradients) {
  to.copy_(gradients);
  if (to.scalar_type() != at::kBFloat16 || gradients.scalar_type() == at::kBFloat16) return;
  if (!to.is_cpu() || !to.is_non_overlapping_and_dense()) return;
  const auto count = static_cast<std::size_t>(to.numel());
  if (are_finite(to.const_data_ptr(), count, DataType::BFloat16)) return;
  const double largest = std::numeric_limits<at::BFloat16>::max();
  to.copy_(at::where(at::isfinite(gradients), at::clamp(gradients, -largest, largest), gradients));
}

}  // namespace troupe::train
