#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "built.hpp"
#include "python.hpp"

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

using Tensors = std::map<std::string, torch::Tensor>;

/// Where it is false, the test says that it is skipped.
inline bool has_safetensors() {
  return test::has_interpreter(TROUPE_READERS_PYTHON, "Python package safetensors");
}
inline bool has_pytorch() {
  return has_safetensors() &&
         test::has_interpreter(TROUPE_TORCH_PYTHON, "PyTorch", "./run test frameworks -- torch");
}

/// What a Python program prints that has PyTorch of the one environment and `safetensors` of the
/// other.
inline std::string pytorch(const std::filesystem::path& folder, const std::string& program) {
  const auto readers = std::filesystem::path(TROUPE_READERS_PYTHON).parent_path().parent_path();
  return test::python(folder,
                      "import glob, sys\nsys.path += glob.glob('" + readers.string() +
                          "/lib/python3*/site-packages')\n" + program,
                      TROUPE_TORCH_PYTHON);
}

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
