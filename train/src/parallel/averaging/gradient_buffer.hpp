#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/communicator.hpp>
#include <troupe/train/data_parallel.hpp>

#include "parallel/buckets.hpp"

namespace troupe::train {

/// The type that gradients of the given type have while the ranks average them.
at::ScalarType averaged_type(at::ScalarType type, GradientCompression compression);

/// The gradients of one bucket, one after the other in memory that the ranks average in place. A
/// gradient that autograd has made moves into its part of the memory and stays there, so that an
/// average needs no copy to come to its parameter.
///
/// With compression a copy in the smaller type is what the ranks average: compress() makes it, once
/// all gradients are there, and expand() puts the averages in the place of the gradients.
///
/// Lives in one rank's process. One thread at a time uses it.
class GradientBuffer {
 public:
  /// `parameters`: of one type and device, the same on all ranks. A collective, as the communicator
  /// allocates. Throws std::invalid_argument where the type cannot be averaged.
  GradientBuffer(const std::vector<NamedTensor>& parameters, Communicator& communicator,
                 GradientCompression compression);

  /// Where the gradient of a parameter lies, in the parameter's shape.
  const at::Tensor& part(std::size_t parameter) const { return parts_[parameter]; }
  std::int64_t elements() const { return flat_.numel(); }
  /// Whether compress() is still to come before the ranks average, in one type on all of them.
  bool lacks_copy() const { return is_compressed() && !compressed_.defined(); }

  /// Whether the gradient lies in its part: also as another tensor over that memory, which
  /// Module::zero_grad(false) makes of it.
  bool holds(std::size_t parameter, const at::Tensor& gradient) const;
  /// The gradient moves into its part. One that is undefined counts as zero, and stays undefined.
  void move_in(std::size_t parameter, at::Tensor& gradient);
  /// `room`: at least elements() of the smaller type, which nobody uses until expand(); undefined:
  /// memory of its own. Nothing happens without compression.
  void compress(const at::Tensor& room = {});
  /// What the ranks average: the copy since compress(), and otherwise the gradients themselves.
  const at::Tensor& averaged() const { return compressed_.defined() ? compressed_ : flat_; }
  /// Nothing happens where nothing was compressed.
  void expand();
  /// The step is over, well or not: a copy that was not expanded is dropped.
  void drop_copy() { compressed_.reset(); }

 private:
  bool is_compressed() const { return type_ != flat_.scalar_type(); }

  at::Tensor flat_;
  std::vector<at::Tensor> parts_;
  at::ScalarType type_;  // in which the ranks average
  at::Tensor compressed_;
};

}  // namespace troupe::train
