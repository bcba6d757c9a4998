#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/mixed_precision.hpp>

namespace torch::nn {
class Module;
}

/// Values of parameters in float32, where the parameters themselves are of bfloat16 or float16
/// (Micikevicius et al., "Mixed Precision Training", ICLR 2018, section 3.1).
namespace troupe::train {

/// Whether the tensor is of bfloat16 or float16.
bool is_small(const at::Tensor& tensor);

/// What the models of a Context were before their parameters became smaller, until an optimizer
/// that is prepared has its part of it.
///
/// Lives in one rank's process; used by one thread.
class InitialMasters {
 public:
  /// Throws std::invalid_argument for Type::Float32.
  explicit InitialMasters(MixedPrecision::Type type);

  /// Gives the trained parameters of either smaller type memory of float32, so that all ranks
  /// compare and send the same, with the values that they had before a narrow() that no optimizer
  /// has followed; and the buffers of batch normalization. Not those that one of the `others` has
  /// too, whose gradients are averaged as they are.
  void widen(const torch::nn::Module& module,
             const std::vector<std::shared_ptr<torch::nn::Module>>& others);
  /// Gives the trained parameters of float32 memory of the smaller type, but those of batch
  /// normalization, and keeps what they were. Throws std::invalid_argument, naming the parameter,
  /// for a number that the smaller type cannot hold.
  void narrow(const torch::nn::Module& module);
  /// Undefined where the parameter was not made smaller, or its value is no longer kept.
  at::Tensor find(const at::Tensor& parameter) const;
  /// An optimizer has its value.
  void forget(const at::Tensor& parameter) { kept_.erase(parameter.unsafeGetTensorImpl()); }

 private:
  struct Kept {
    at::Tensor parameter;  // which keeps the address its own
    at::Tensor value;
  };
  const at::ScalarType type_;
  std::unordered_map<const void*, Kept> kept_;
};

/// `master`, but for elements whose rounding is not what `value` has: those have been written, and
/// become what was written. `value` may be of a smaller type and on another device.
void take_written(at::Tensor& master, const at::Tensor& value);

}  // namespace troupe::train
