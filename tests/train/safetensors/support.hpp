#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

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

}  // namespace troupe::testing
