#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

/// Small models for tests. To be used in forked ranks only.
namespace troupe::testing {

/// Linear layers with tanh between them, float64, the same on every rank that gives the same seed.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::vector<std::int64_t> widths, std::uint64_t seed = 1) {
    torch::manual_seed(seed);
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      layers.push_back(register_module("layer" + std::to_string(i),
                                       torch::nn::Linear(widths[i], widths[i + 1])));
    }
    to(torch::kFloat64);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[i]->forward(x);
      if (i + 1 < layers.size()) x = torch::tanh(x);
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Net);

inline const std::vector<std::int64_t> kNarrowWidths{4, 8, 2};

/// The same rows on every rank.
inline torch::Tensor rows(std::int64_t count, std::int64_t width, std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn({count, width}, torch::kFloat64);
}

/// This rank's part of the rows: every ranks-th.
inline torch::Tensor part(const torch::Tensor& all, int rank, int ranks) {
  return all.slice(0, rank, all.size(0), ranks).contiguous();
}

}  // namespace troupe::testing
