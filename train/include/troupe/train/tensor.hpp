#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include <torch/types.h>

#include <troupe/detail/archive.hpp>

/// Tensors as arguments, results and members of either. Include this header before the call that
/// has a tensor.
///
/// A tensor travels with its type, its sizes and its values; it arrives in main memory, contiguous,
/// without a gradient and outside any graph. A tensor of 100 KiB or more is stored once in the
/// memory of each node, and every process there reads the same bytes. It is then read-only, and
/// writing to it in place ends the process with SIGSEGV: clone() a tensor that you want to change.
/// The memory stays as long as a tensor uses it.
namespace troupe::detail {

[[noreturn]] inline void refuse_tensor(const char* why) { throw DecodeError(why); }

inline void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const torch::Tensor& tensor) {
  archive(tensor.defined());
  if (!tensor.defined()) return;
  if (tensor.layout() != torch::kStrided || tensor.is_quantized()) {
    throw std::invalid_argument(
        "a tensor that is sparse or quantized cannot travel; send what it is made of");
  }
  const auto values = tensor.detach().to(torch::kCPU).contiguous();
  archive(static_cast<std::int8_t>(values.scalar_type()), static_cast<std::uint32_t>(values.dim()));
  for (const auto size : values.sizes()) archive(static_cast<std::int64_t>(size));
  archive.align();
  archive.write(values.data_ptr(), values.nbytes());
}

/// The bytes that such a tensor has. Throws DecodeError if no tensor can be like that.
inline std::uint64_t tensor_bytes(torch::ScalarType type, const std::vector<std::int64_t>& sizes) {
  std::uint64_t bytes = torch::elementSize(type);
  for (const auto size : sizes) {
    if (size < 0) refuse_tensor("it has a tensor of a negative size");
    if (size != 0 &&
        bytes > std::numeric_limits<std::int64_t>::max() / static_cast<std::uint64_t>(size))
      refuse_tensor("it has a tensor of more bytes than there can be");
    bytes *= static_cast<std::uint64_t>(size);
  }
  return bytes;
}

inline void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, torch::Tensor& tensor) {
  bool defined = false;
  archive(defined);
  tensor = torch::Tensor();
  if (!defined) return;
  std::int8_t type_number = 0;
  std::uint32_t dimensions = 0;
  archive(type_number, dimensions);
  const auto type = static_cast<torch::ScalarType>(type_number);
  const bool known = type_number >= 0 &&
                     type_number < static_cast<std::int8_t>(torch::ScalarType::Undefined) &&
                     !c10::isQIntType(type) && !c10::isBitsType(type);
  if (!known) refuse_tensor("it has a tensor of an unknown type");
  if (dimensions > 64) refuse_tensor("it has a tensor of more than 64 dimensions");
  std::vector<std::int64_t> sizes(dimensions);
  for (auto& size : sizes) archive(size);
  archive.align();
  const auto bytes = tensor_bytes(type, sizes);
  if (bytes > archive.remaining()) refuse_tensor("it has a tensor that ends too early");
  const auto block = archive.take(bytes);
  auto* values = const_cast<char*>(block.bytes.data());
  if (block.keep && bytes != 0) {
    tensor = torch::from_blob(
        values, sizes, [keep = block.keep](void*) {}, type);
  } else {
    archive.charge(bytes);
    tensor = bytes == 0 ? torch::empty(sizes, type) : torch::from_blob(values, sizes, type).clone();
  }
}

}  // namespace troupe::detail
