#include "safetensors/model_tensors.hpp"

#include <cstddef>
#include <unordered_map>

#include <torch/nn/module.h>

namespace troupe::train::safetensors {

std::vector<ModelTensor> tensors_of(const torch::nn::Module& model) {
  std::vector<ModelTensor> found;
  std::unordered_map<const void*, std::size_t> places;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const auto [place, is_new] = places.emplace(tensor.unsafeGetTensorImpl(), found.size());
    if (is_new) found.push_back({.tensor = tensor, .names = {}});
    found[place->second].names.push_back(name);
  };
  for (const auto& item : model.named_parameters()) add(item.key(), item.value());
  for (const auto& item : model.named_buffers()) add(item.key(), item.value());
  return found;
}

}  // namespace troupe::train::safetensors
