#include "safetensors/values.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/name.hpp"
#include "safetensors/dtype.hpp"

namespace troupe::train::safetensors {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::invalid_argument(
      fmt::format("safetensors cannot have the tensor '{}': {}", config::printable(name), why));
}

/// Whether elements may lie on each other: in the order of the strides, a step in one dimension
/// must lead behind all that the dimensions before it reach.
bool may_overlap(const at::Tensor& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // strides, and how often they are made
  for (std::int64_t at = 0; at < tensor.dim(); ++at) {
    if (tensor.size(at) > 1) steps.emplace_back(tensor.stride(at), tensor.size(at) - 1);
  }
  std::ranges::sort(steps);
  std::int64_t reached = 0;
  for (const auto& [stride, count] : steps) {
    if (stride <= reached) return true;
    reached += stride * count;
  }
  return false;
}

}  // namespace

bool has_memory(const at::Tensor& tensor) {
  return tensor.is_nested() || tensor.numel() == 0 || tensor.is_meta() || !tensor.has_storage() ||
         tensor.storage().nbytes() != 0;
}

std::string why_no_values(const at::Tensor& tensor) {
  if (!tensor.defined()) return "it is undefined";
  if (tensor.is_nested()) return "it is nested; use what its unbind() returns";
  if (tensor.layout() != at::kStrided)
    return fmt::format("its layout is {}; use its to_dense()", c10::str(tensor.layout()));
  if (tensor.is_quantized()) return "it is quantized; use its dequantize()";
  if (tensor.is_meta()) return "it is on the device meta, and has no values";
  return "";
}

std::string how_different(const at::Tensor& tensor, const std::vector<std::int64_t>& shape,
                          at::ScalarType type, const char* place) {
  if (tensor.sizes() != at::IntArrayRef(shape))
    return fmt::format("has the shape [{}] in the model and [{}] in the {}",
                       fmt::join(tensor.sizes().vec(), ", "), fmt::join(shape, ", "), place);
  const auto own = tensor.scalar_type();
  if (own == type || (at::isFloatingType(own) && at::isFloatingType(type))) return "";
  return fmt::format(
      "has the type {} in the model and {} in the {}; only types of floating point are converted",
      c10::toString(own), c10::toString(type), place);
}

std::string how_different(const at::Tensor& tensor, const std::vector<std::int64_t>& shape,
                          DType type, const char* place) {
  return how_different(tensor, shape, scalar_type_of(type), place);
}

bool is_plain(const at::Tensor& tensor, at::ScalarType of_file) {
  return tensor.scalar_type() == of_file && tensor.is_cpu() && tensor.is_contiguous() &&
         !tensor.is_conj() && !tensor.is_neg();
}

std::string why_not_writable(const at::Tensor& tensor) {
  if (auto why = why_no_values(tensor); !why.empty()) return why;
  if (tensor.numel() != 0 && may_overlap(tensor))
    return "its elements share memory, as those of an expanded view; use its clone()";
  if (tensor.is_inference() && !c10::InferenceMode::is_enabled())
    return "it was made under c10::InferenceMode; load under it";
  return "";
}

Entry entry_of(const std::string& name, const at::Tensor& tensor) {
  if (const auto why = why_no_values(tensor); !why.empty()) refuse(name, why);
  const auto type = dtype_of(tensor.scalar_type());
  if (!type)
    refuse(name, fmt::format("the format lacks the type {}", c10::toString(tensor.scalar_type())));
  return {.type = *type, .shape = tensor.sizes().vec()};
}

at::Tensor values_in_order(const at::Tensor& tensor) {
  const auto values = tensor._is_zerotensor() ? tensor.detach().clone() : tensor.detach();
  return values.to(at::kCPU).resolve_conj().resolve_neg().contiguous();
}

at::Tensor read_tensor(const Source::Place& place) {
  const auto& entry = *place.entry;
  auto tensor = at::empty(entry.shape, scalar_type_of(entry.type));
  place.file->read(entry, tensor.mutable_data_ptr());
  return tensor;
}

void read_into(const at::Tensor& tensor, const Source::Place& place) {
  const c10::NoGradGuard no_gradients;
  if (is_plain(tensor, scalar_type_of(place.entry->type))) {
    place.file->read(*place.entry, tensor.mutable_data_ptr());
    tensor.unsafeGetTensorImpl()->bump_version();  // as an operator that writes in place
  } else {
    tensor.copy_(read_tensor(place));
  }
}

}  // namespace troupe::train::safetensors
