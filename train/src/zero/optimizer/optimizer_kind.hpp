#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
class OptimizerParamState;
}  // namespace torch::optim

namespace troupe::train {

/// The state that an optimizer keeps for one parameter, whatever the optimizer.
struct ElementState {
  std::int64_t steps = 0;           ///< 0 where the optimizer does not count them
  std::vector<at::Tensor> tensors;  ///< a value for each element; undefined where there is none
};

/// An optimizer that updates each element of a parameter by what it knows of that element alone.
/// It therefore updates a part of a parameter as it would update that part of the whole.
class OptimizerKind {
 public:
  virtual ~OptimizerKind() = default;

  /// nullptr: not known to be such an optimizer. A class that a program has derived from a known
  /// one is not known.
  static const OptimizerKind* of(const torch::optim::Optimizer& optimizer);
  /// "Adam", or the name of another class.
  static std::string name_of(const torch::optim::Optimizer& optimizer);
  /// "Adam, AdamW and SGD"
  static std::string known();

  virtual std::string name() const = 0;
  /// Of ElementState::tensors, for every parameter: the names that PyTorch has for them.
  virtual std::vector<std::string> tensor_names() const = 0;
  virtual ElementState read(const torch::optim::OptimizerParamState& state) const = 0;
  virtual std::unique_ptr<torch::optim::OptimizerParamState> make(
      const ElementState& state) const = 0;
  /// Makes a state ready for steps with other options than it was made with: adds the maximum of
  /// AMSGrad, which begins as it does in a new optimizer.
  virtual void complete(ElementState& state,
                        const torch::optim::OptimizerOptions& options) const = 0;
  /// With the same parameters, groups and options, without state.
  virtual std::unique_ptr<torch::optim::Optimizer> without_state(
      const torch::optim::Optimizer& optimizer) const = 0;
};

}  // namespace troupe::train
