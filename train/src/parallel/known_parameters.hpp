#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/buckets.hpp"

namespace torch::nn {
class Module;
}

namespace troupe::train {

/// Which tensors the parameters of a model were at one time, to find those that have come since: a
/// layer that was replaced or registered then, or a parameter whose tensor was. A value; the model
/// may end before it. No thread changes the model meanwhile.
class KnownParameters {
 public:
  KnownParameters() = default;
  explicit KnownParameters(const std::shared_ptr<torch::nn::Module>& model);

  /// Parameters that want gradients, and were none of the model's, with their names now. Where there
  /// are none that costs some nanoseconds for each parameter.
  std::vector<NamedTensor> added() const;

 private:
  std::weak_ptr<torch::nn::Module> model_;
  std::vector<at::Tensor> tensors_;  // as they are met; held, so that no other one has its address
};

}  // namespace troupe::train
