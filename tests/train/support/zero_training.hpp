#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <troupe/train/context.hpp>

#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/small_training.hpp"

/// Trainings whose optimizer's state may be cut, on CPUs and GPUs. To be used in forked ranks only.
namespace troupe::testing {

inline train::ContextOptions options_with(int stage, bool find_unused = false) {
  auto options = small_buckets(find_unused);
  options.zero.stage = stage;
  return options;
}

inline torch::optim::Adam adam(Net& net, bool amsgrad = false) {
  return torch::optim::Adam(net->parameters(),
                            torch::optim::AdamOptions(0.01).weight_decay(0.1).amsgrad(amsgrad));
}
inline torch::optim::AdamW adamw(Net& net) {
  return torch::optim::AdamW(net->parameters(), torch::optim::AdamWOptions(0.01));
}
inline torch::optim::SGD sgd(Net& net, bool nesterov = false) {
  return torch::optim::SGD(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(nesterov));
}

inline std::vector<torch::Tensor> values_of(Net& net) {
  std::vector<torch::Tensor> values;
  for (const auto& parameter : net->parameters()) values.push_back(parameter.detach().clone());
  return values;
}

inline void expect_same(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b,
                        double tolerance, const std::string& what) {
  expect(a.size() == b.size(), what + ": as many parameters");
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect(torch::allclose(a[i], b[i], tolerance, tolerance), [&] {
      return fmt::format("{}: parameter {} differs by {}", what, i,
                         (a[i] - b[i]).abs().max().item<double>());
    });
  }
}

/// One step of a function that knows nothing of ZeRO.
inline void step(train::Context& ctx, Net& net, torch::optim::Optimizer& optimizer,
                 std::uint64_t number) {
  optimizer.zero_grad();
  loss_of(net, ctx.rank(), ctx.world_size(), number).backward();
  optimizer.step();
}

}  // namespace troupe::testing
