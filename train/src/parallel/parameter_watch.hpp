#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/buckets.hpp"

namespace torch::autograd {
struct Node;
}
namespace torch::nn {
class Module;
}

namespace troupe::train {

/// What the parameters of a model were when it was prepared, to refuse a backward, with
/// std::logic_error, that comes to one whose gradient would be averaged over no ranks:
/// * one that was frozen then, or whose type or device was changed, which gives it another
///   accumulator. A hook on each parameter ends a backward that comes to it.
/// * one that the model did not have: of a layer that was replaced or registered since, or one whose
///   tensor was. refuse_added() looks for those.
///
/// Of a model's life in one rank's process. The model may live longer, or end before. No thread
/// changes the model during a call.
class ParameterWatch {
 public:
  explicit ParameterWatch(const std::shared_ptr<torch::nn::Module>& model);
  ~ParameterWatch();
  ParameterWatch(const ParameterWatch&) = delete;
  ParameterWatch& operator=(const ParameterWatch&) = delete;

  /// Throws std::logic_error where the model has a parameter that wants a gradient, that it did not
  /// have, and of which `is_averaged` does not say that its gradient is averaged: a layer may have
  /// been prepared as a model of its own. It makes no name, and so costs little, where there is none.
  void refuse_added(bool (*is_averaged)(const at::Tensor&)) const;

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
  std::vector<NamedTensor> added() const;

  std::weak_ptr<torch::nn::Module> model_;
  std::vector<std::unique_ptr<Watched>> watched_;
  // Each as often as the model has it, in its order; held, so that no other one has its address.
  std::vector<at::Tensor> tensors_;
};

/// Throws std::logic_error for parameters that got no gradient in a backward, naming some of them.
/// `parameters`: how many the model has that are trained.
[[noreturn]] void refuse_unused(const std::vector<std::string>& unused, std::size_t parameters);

}  // namespace troupe::train
