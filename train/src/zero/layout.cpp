#include "zero/layout.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace troupe::train {

std::vector<std::int64_t> elements_of(const std::vector<NamedTensor>& parameters) {
  std::vector<std::int64_t> elements;
  for (const auto& parameter : parameters) elements.push_back(parameter.tensor.numel());
  return elements;
}

at::Tensor laid_out(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter) {
  const auto elements = flat.narrow(0, offset, parameter.numel());
  return parameter.is_non_overlapping_and_dense()
             ? elements.as_strided(parameter.sizes(), parameter.strides())
             : elements.view(parameter.sizes());
}

void finish_writes(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return;
  const c10::impl::VirtualGuardImpl device(tensor.device().type());
  device.synchronizeStream(device.getStream(tensor.device()));
}

}  // namespace troupe::train
