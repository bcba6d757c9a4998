#pragma once

#include <array>
#include <cstdio>
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

/// What a Python program, which is written into the folder, prints there; its traceback if it
/// fails.
inline std::string python_says(const std::filesystem::path& folder, const std::string& interpreter,
                               const std::string& program) {
  std::ofstream(folder / "judge.py") << program;
  const auto command =
      "cd '" + folder.string() + "' && timeout 60 '" + interpreter + "' judge.py 2>&1";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "no shell";
  std::array<char, 4096> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    output.append(part.data(), size);
  pclose(pipe);
  return output;
}

}  // namespace troupe::testing
