#pragma once

#include <torch/types.h>

#include <troupe/detail/archive.hpp>

/// Tensors as arguments, results and members of either. Include this header before the call that
/// has a tensor.
///
/// What travels of a tensor is its type, its sizes, its values, and requires_grad if the tensor is
/// a leaf. A tensor arrives in main memory, contiguous, without a gradient and outside any graph.
/// * Values are those that the tensor shows: a conjugated, negated, transposed or expanded view
///   arrives as a plain tensor. The receiver gets a copy for each of two tensors that share memory.
/// * Strides, memory formats (channels_last) and names of dimensions do not travel.
/// * Every type of LibTorch travels bit for bit, except the quantized ones.
/// * An undefined tensor arrives as an undefined one.
/// * A tensor that is sparse, quantized, nested, of mkldnn, without memory of its own (on the
///   device meta, within vmap) or of more than 64 dimensions is refused. The sender throws
///   std::invalid_argument, whose text names the kind of tensor and what to send instead.
///
/// A tensor of 100 KiB or more is stored once in the memory of each node, and every process there
/// reads the same bytes. It is then read-only, and writing to it in place ends the process with
/// SIGSEGV: clone() a tensor that you want to change. The memory stays as long as a tensor uses it.
namespace troupe::detail {

/// Throws std::invalid_argument for a tensor that cannot travel.
void CEREAL_SAVE_FUNCTION_NAME(OutArchive& archive, const torch::Tensor& tensor);
/// Throws DecodeError if the bytes are not those of a tensor.
void CEREAL_LOAD_FUNCTION_NAME(InArchive& archive, torch::Tensor& tensor);

}  // namespace troupe::detail
