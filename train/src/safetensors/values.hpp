#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "safetensors/source.hpp"

namespace troupe::train::safetensors {

/// Whether the memory of a tensor is there: of a parameter of ZeroOptions::stage 3 it is only while
/// the parameter is used.
bool has_memory(const at::Tensor& tensor);

/// Why values of the tensor can be neither written nor read: "it is quantized; use its
/// dequantize()". Empty: they can.
std::string why_no_values(const at::Tensor& tensor);

/// Why nothing can be read into the tensor. Empty: it can.
std::string why_not_writable(const at::Tensor& tensor);

/// How values of this shape and type differ from what the tensor can take: "has the shape [3] in
/// the model and [3, 1] in the file". Empty: the tensor can take the values, which are converted
/// between types of floating point. `place`: where the values are, such as "file".
std::string how_different(const at::Tensor& tensor, const std::vector<std::int64_t>& shape,
                          at::ScalarType type, const char* place);
std::string how_different(const at::Tensor& tensor, const std::vector<std::int64_t>& shape,
                          DType type, const char* place);

/// Whether bytes of a file, of values of this type, can be read into the tensor's memory as they
/// are.
bool is_plain(const at::Tensor& tensor, at::ScalarType of_file);

/// The entry of a tensor that has no place yet. Throws std::invalid_argument, naming the tensor,
/// for one that the format has no place for.
Entry entry_of(const std::string& name, const at::Tensor& tensor);

/// The values that a tensor shows, in main memory and contiguous: the tensor's own memory, where
/// they are there.
at::Tensor values_in_order(const at::Tensor& tensor);

/// A tensor of its own, in main memory.
at::Tensor read_tensor(const Source::Place& place);

/// Reads values into a tensor, for which there is no why_not_writable(). It keeps its type and
/// device.
void read_into(const at::Tensor& tensor, const Source::Place& place);

}  // namespace troupe::train::safetensors
