#include "parallel/averaging/model_buffers.hpp"

#include <cstddef>
#include <cstdint>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "zero/layout.hpp"

namespace troupe::train {
namespace {

constexpr std::int64_t kAlignment = 16;  // that of the largest type

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

/// Where each tensor begins, and, as the last one, where all end.
std::vector<std::int64_t> begins_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> begins{0};
  for (const auto& tensor : tensors) {
    const auto end = begins.back() + bytes_of(tensor);
    begins.push_back((end + kAlignment - 1) / kAlignment * kAlignment);
  }
  return begins;
}

}  // namespace

ModelBuffers::ModelBuffers(const std::vector<NamedTensor>& buffers, c10::Device device) {
  for (const auto& [name, tensor] : buffers) {
    if (tensor.numel() > 0) buffers_.push_back(tensor);
  }
  const auto begins = begins_of(buffers_);
  bytes_ = at::empty({begins.back()}, at::TensorOptions(device).dtype(at::kByte));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const auto& buffer = buffers_[i];
    places_.push_back(bytes_.narrow(0, begins[i], bytes_of(buffer))
                          .view(buffer.scalar_type())
                          .view(buffer.sizes()));
  }
}

void ModelBuffers::broadcast(Communicator& communicator, int root) const {
  if (buffers_.empty() || communicator.size() == 1) return;
  const at::NoGradGuard no_grad;
  const bool is_root = communicator.rank() == root;
  for (std::size_t i = 0; is_root && i < buffers_.size(); ++i) places_[i].copy_(buffers_[i]);
  finish_writes(bytes_);
  communicator.broadcast(bytes_.data_ptr(), static_cast<std::size_t>(bytes_.numel()),
                         DataType::UInt8, root);
  for (std::size_t i = 0; !is_root && i < buffers_.size(); ++i)
    buffers_[i].variable_data().copy_(places_[i]);
}

}  // namespace troupe::train
