#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

/// What the tests of safetensors have alike.
namespace troupe::testing {

/// Two layers, one of which has buffers.
struct BodyImpl : torch::nn::Module {
  BodyImpl() {
    register_module("linear", linear);
    register_module("norm", norm);
  }
  torch::nn::Linear linear{torch::nn::LinearOptions(4, 3)};
  torch::nn::BatchNorm1d norm{torch::nn::BatchNorm1dOptions(3)};
};
TORCH_MODULE(Body);

/// A layer whose weight is known by two names, as an embedding and the head of a language model.
struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    register_module("head", head);
    weight = register_parameter("embedding", head->weight);
  }
  torch::nn::Linear head{torch::nn::LinearOptions(4, 3).bias(false)};
  torch::Tensor weight;
};
TORCH_MODULE(Tied);

inline std::string bytes_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// Compares bits, because a NaN is not equal to itself, and some types have no comparison.
inline bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  const auto bits = [](const torch::Tensor& tensor) {
    const auto values = tensor.detach().resolve_conj().contiguous();
    const auto* bytes = static_cast<const char*>(values.const_data_ptr());
    return std::string(bytes, values.nbytes());
  };
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && bits(a) == bits(b);
}

}  // namespace troupe::testing
