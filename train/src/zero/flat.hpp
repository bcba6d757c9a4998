#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/buckets.hpp"
#include "zero/partition.hpp"

namespace troupe::train {

class GradientShard;

/// Parameters of one group, type and device, whose values lie in one buffer, so that one all-gather
/// brings what the other ranks have updated. Lives in one rank's process; not thread-safe.
class Flat {
 public:
  /// Moves the parameters' values into the buffer. The parameters stay the same tensors. Throws
  /// std::invalid_argument for a type that cannot be sent.
  Flat(std::vector<NamedTensor> parameters, int rank, int ranks);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const Partition& partition() const { return partition_; }
  /// What this rank updates: elements of parameters, as tensors of one dimension in the buffer.
  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<at::Tensor>& piece_tensors() const { return piece_tensors_; }
  const at::Tensor& values() const { return values_; }
  at::Tensor own_part() const;
  /// Where the parameter's values belong, in its shape, without gaps.
  const at::Tensor& place(std::size_t parameter) const { return places_[parameter]; }

  /// A parameter whose values the program has put elsewhere since, as loading a module does, is moved
  /// into the buffer again. Throws std::logic_error, naming the parameter, for one of another size,
  /// type or device.
  void move_back();
  /// Gives the pieces the gradients of their elements. Throws std::invalid_argument for a gradient
  /// that is sparse.
  void lend_gradients();
  /// The same from averages of the same parameters, in the same order.
  void lend_gradients(const GradientShard& averages);
  void drop_gradients();

  /// The elements of a tensor that is as large as the parameter, in the order in which the buffer has
  /// those of the parameter.
  at::Tensor in_order(std::size_t parameter, const at::Tensor& tensor) const;

 private:
  const std::vector<NamedTensor> parameters_;
  const Partition partition_;
  const std::vector<Piece> pieces_;
  const int rank_;
  at::Tensor values_;
  std::vector<at::Tensor> places_;
  std::vector<at::Tensor> piece_tensors_;
};

}  // namespace troupe::train
