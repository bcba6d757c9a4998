#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/buckets.hpp"

namespace torch::autograd {
struct Node;
}

namespace troupe::train {

/// Ends a backward with std::logic_error that comes to a parameter which is not what it was when
/// its model was prepared, and whose gradient would therefore be averaged over no ranks: one that
/// was frozen then, or whose type or device was changed, which gives it another accumulator.
///
/// A hook on each parameter; of a model's life in one rank's process. The model may live longer.
class ParameterWatch {
 public:
  /// All parameters of a model, each once.
  explicit ParameterWatch(std::vector<NamedTensor> parameters);
  ~ParameterWatch();
  ParameterWatch(const ParameterWatch&) = delete;
  ParameterWatch& operator=(const ParameterWatch&) = delete;

 private:
  ParameterWatch() = default;
  struct Watched {
    std::string name;
    at::Tensor variable;
    std::shared_ptr<torch::autograd::Node> accumulator;  // nullptr: it was frozen
    std::optional<unsigned> hook = {};
  };
  void watch(NamedTensor parameter);
  void check(const Watched& watched) const;

  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace troupe::train
