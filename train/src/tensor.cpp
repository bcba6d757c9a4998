#include <troupe/train/tensor.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace troupe::detail {
namespace {

constexpr std::int64_t kMaxDimensions = 64;

[[noreturn]] void cannot_travel(const std::string& kind, const std::string& instead) {
  throw std::invalid_argument(fmt::format("a tensor {} cannot travel: {}", kind, instead));
}

[[noreturn]] void refuse_bytes(const char* why) { throw DecodeError(why); }

void check_layout(const torch::Tensor& tensor) {
  switch (tensor.layout()) {
    case torch::kStrided:
      return;
    case torch::kSparse:
      cannot_travel("of the layout Sparse",
                    "send indices() and values() of its coalesce(), and sizes(); or to_dense()");
    case torch::kSparseCsr:
      cannot_travel("of the layout SparseCsr",
                    "send crow_indices(), col_indices(), values() and sizes(); or to_dense()");
    case torch::kSparseBsr:
      cannot_travel("of the layout SparseBsr",
                    "send crow_indices(), col_indices(), values() and sizes(); or to_dense()");
    case torch::kSparseCsc:
      cannot_travel("of the layout SparseCsc",
                    "send ccol_indices(), row_indices(), values() and sizes(); or to_dense()");
    case torch::kSparseBsc:
      cannot_travel("of the layout SparseBsc",
                    "send ccol_indices(), row_indices(), values() and sizes(); or to_dense()");
    case torch::kMkldnn:
      cannot_travel("of the layout Mkldnn", "send to_dense()");
    default:
      cannot_travel("of a layout that is not Strided", "send to_dense()");
  }
}

void check_sendable(const torch::Tensor& tensor) {
  if (tensor.is_nested())
    cannot_travel("that is nested", "send the std::vector of tensors that unbind() returns");
  check_layout(tensor);
  if (tensor.is_quantized()) {
    cannot_travel(fmt::format("of the quantized type {}", c10::toString(tensor.scalar_type())),
                  "send int_repr() with its scale and its zero point, or dequantize()");
  }
  if (tensor.is_meta()) {
    cannot_travel("on the device meta",
                  "it has no values; send sizes() and call torch::empty() in the receiver");
  }
  if (!tensor.has_storage()) {
    cannot_travel("without memory of its own, such as one within vmap or a transform of torch.func",
                  "send it from outside of that transform");
  }
  if (tensor.dim() > kMaxDimensions) {
    cannot_travel(
        fmt::format("of {} dimensions", tensor.dim()),
        fmt::format("at most {} can; send a reshape() of it, and sizes()", kMaxDimensions));
  }
}

/// In main memory, contiguous. Of another type of the same size where LibTorch cannot copy values
/// of the tensor's type.
torch::Tensor values_in_order(const torch::Tensor& tensor) {
  auto values = tensor.detach();
  if (values._is_zerotensor()) values = values.clone();  // it has no memory
  values = values.to(torch::kCPU).resolve_conj().resolve_neg();
  if (values.element_size() == 1) values = values.view(torch::kByte);
  return values.contiguous();
}

/// The bytes that such a tensor has. Throws DecodeError if no tensor can be like that.
std::uint64_t tensor_bytes(torch::ScalarType type, const std::vector<std::int64_t>& sizes) {
  std::uint64_t bytes = torch::elementSize(type);
  bool is_empty = false;
  bool is_too_large = false;
  for (const auto size : sizes) {
    if (size < 0) refuse_bytes("it has a tensor of a negative size");
    is_empty = is_empty || size == 0;
    if (size == 0 || is_too_large) continue;
    is_too_large =
        bytes > std::numeric_limits<std::int64_t>::max() / static_cast<std::uint64_t>(size);
    bytes *= static_cast<std::uint64_t>(size);
  }
  if (is_empty) return 0;
  if (is_too_large) refuse_bytes("it has a tensor of more bytes than there can be");
  return bytes;
}

torch::ScalarType read_type(InArchive& archive) {
  std::int8_t number = 0;
  archive(number);
  const auto type = static_cast<torch::ScalarType>(number);
  const bool is_known = number >= 0 &&
                        number < static_cast<std::int8_t>(torch::ScalarType::Undefined) &&
                        !c10::isQIntType(type);
  if (!is_known) refuse_bytes("it has a tensor of an unknown type");
  return type;
}

std::vector<std::int64_t> read_sizes(InArchive& archive) {
  std::uint32_t dimensions = 0;
  archive(dimensions);
  if (dimensions > kMaxDimensions) refuse_bytes("it has a tensor of more than 64 dimensions");
  std::vector<std::int64_t> sizes(dimensions);
  for (auto& size : sizes) archive(size);
  return sizes;
}

/// In the store's memory if the bytes lie there, else a copy.
torch::Tensor read_values(InArchive& archive, torch::ScalarType type,
                          const std::vector<std::int64_t>& sizes) {
  const auto bytes = tensor_bytes(type, sizes);
  if (bytes > archive.remaining()) refuse_bytes("it has a tensor that ends too early");
  const auto block = archive.take(bytes);
  if (block.keep && bytes != 0) {
    return torch::from_blob(
        const_cast<char*>(block.bytes.data()), sizes, [keep = block.keep](void*) {}, type);
  }
  archive.charge(bytes);
  auto tensor = torch::empty(sizes, type);
  if (bytes != 0) std::memcpy(tensor.mutable_data_ptr(), block.bytes.data(), bytes);
  return tensor;
}

}  // namespace

void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const torch::Tensor& tensor) {
  archive(tensor.defined());
  if (!tensor.defined()) return;
  check_sendable(tensor);
  const auto values = values_in_order(tensor);
  archive(tensor.requires_grad() && tensor.is_leaf(),
          static_cast<std::int8_t>(tensor.scalar_type()), static_cast<std::uint32_t>(tensor.dim()));
  for (const auto size : tensor.sizes()) archive(static_cast<std::int64_t>(size));
  archive.align();
  archive.write(values.const_data_ptr(), values.nbytes());
}

void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, torch::Tensor& tensor) {
  bool is_defined = false;
  archive(is_defined);
  tensor = torch::Tensor();
  if (!is_defined) return;
  bool requires_grad = false;
  archive(requires_grad);
  const auto type = read_type(archive);
  const auto sizes = read_sizes(archive);
  archive.align();
  try {
    tensor = read_values(archive, type, sizes).set_requires_grad(requires_grad);
  } catch (const c10::Error&) {  // of sizes whose strides overflow, or a gradient of integers
    refuse_bytes("it has a tensor that LibTorch cannot make");
  }
}

}  // namespace troupe::detail
