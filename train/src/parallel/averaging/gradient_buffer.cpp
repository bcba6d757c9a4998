#include "parallel/averaging/gradient_buffer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "parallel/averaging/narrowing.hpp"
#include "parallel/in_place.hpp"
#include "parallel/tensor_type.hpp"

namespace troupe::train {

at::ScalarType averaged_type(at::ScalarType type, GradientCompression compression) {
  const bool is_larger = type == at::kFloat || type == at::kDouble;
  return compression == GradientCompression::BFloat16 && is_larger ? at::kBFloat16 : type;
}

GradientBuffer::GradientBuffer(const std::vector<NamedTensor>& parameters,
                               Communicator& communicator, GradientCompression compression) {
  const auto& first = parameters.front().tensor;
  data_type_of(first);  // refuses what cannot be reduced
  type_ = averaged_type(first.scalar_type(), compression);
  std::int64_t elements = 0;
  for (const auto& parameter : parameters) elements += parameter.tensor.numel();
  const auto options = first.options().requires_grad(false);
  const auto element_bytes = first.element_size();
  std::shared_ptr<void> memory;
  if (first.device().is_cpu())
    memory = communicator.allocate(static_cast<std::size_t>(elements) * element_bytes);
  flat_ = memory ? at::from_blob(
                       memory.get(), {elements}, [memory](void*) {}, options)
                 : at::zeros({elements}, options);
  auto* at = static_cast<char*>(flat_.data_ptr());
  for (const auto& [name, tensor] : parameters) {
    // The same memory, but no view of `flat_` to autograd: Optimizer::zero_grad detaches gradients
    // in place, which views refuse.
    parts_.push_back(at::from_blob(
        at, tensor.sizes(), [flat = flat_](void*) {}, options));
    at += static_cast<std::size_t>(tensor.numel()) * element_bytes;
  }
}

bool GradientBuffer::holds(std::size_t parameter, const at::Tensor& gradient) const {
  return is_in_place(gradient, parts_[parameter]);
}

// Autograd makes a gradient in memory of its own whenever there was none.
void GradientBuffer::move_in(std::size_t parameter, at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  const auto& part = parts_[parameter];
  if (!gradient.defined()) {
    part.zero_();
    return;
  }
  if (!holds(parameter, gradient)) part.copy_(gradient);
  gradient = part;
}

void GradientBuffer::compress(const at::Tensor& room) {
  if (!is_compressed()) return;
  const at::NoGradGuard no_grad;
  compressed_ = room.defined() ? room.narrow(0, 0, elements())
                               : at::empty({elements()}, flat_.options().dtype(type_));
  copy_narrowed(compressed_, flat_);
}

void GradientBuffer::expand() {
  if (!compressed_.defined()) return;
  const at::NoGradGuard no_grad;
  flat_.copy_(compressed_);
  compressed_.reset();
}

}  // namespace troupe::train
