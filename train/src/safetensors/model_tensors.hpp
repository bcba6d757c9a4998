#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace troupe::train::safetensors {

/// A parameter or buffer of a model, and all names that the model has for it.
struct ModelTensor {
  at::Tensor tensor;
  std::vector<std::string> names;
};

/// Tensors and names are in the model's order, and parameters come before buffers. A tensor that is
/// undefined is left out.
std::vector<ModelTensor> tensors_of(const torch::nn::Module& model);

}  // namespace troupe::train::safetensors
