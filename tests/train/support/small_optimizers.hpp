#pragma once

#include <utility>
#include <vector>

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "support/net.hpp"

/// Optimizers that learn a small net in a few steps, with options that not all have their defaults.
namespace troupe::testing {

inline torch::optim::Adam adam_of(std::vector<torch::Tensor> parameters, bool amsgrad = false) {
  return torch::optim::Adam(std::move(parameters),
                            torch::optim::AdamOptions(0.01).weight_decay(0.1).amsgrad(amsgrad));
}
inline torch::optim::Adam adam(Net& net, bool amsgrad = false) {
  return adam_of(net->parameters(), amsgrad);
}
inline torch::optim::AdamW adamw(Net& net) {
  return torch::optim::AdamW(net->parameters(), torch::optim::AdamWOptions(0.01));
}
inline torch::optim::SGD sgd(Net& net, bool nesterov = false) {
  return torch::optim::SGD(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(nesterov));
}

}  // namespace troupe::testing
