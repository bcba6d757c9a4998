#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/train/communicator.hpp>

#include "parallel/buckets.hpp"
#include "zero/partition.hpp"

namespace troupe::train {

/// The averages of the gradients of one bucket with ZeRO, stages 2 and 3 (Rajbhandari et al., SC
/// 2020, section 5.2): a rank has those of its part of the bucket alone, and no gradient of a
/// parameter once its bucket is reduced.
///
/// An averaged parameter has a stand-in as its gradient until that is dropped: a tensor of the
/// parameter's size on the device `meta`, which takes no memory, and with which nothing can be
/// computed or written. So zero_grad() and the absence of a gradient mean what they mean without
/// ZeRO, and what would work on a whole gradient fails in place of doing nothing.
///
///   what happens     to a parameter with                 does
///   before_gradient  no gradient                         begins anew
///                    a stand-in                          takes it away, and adds to the average
///                    a gradient that autograd made       nothing: it accumulates under no_sync()
///   reduce           a gradient that has come            averages and drops it
///                    a stand-in                          counts as zero, and adds to the average
///                    no gradient                         counts as zero, and begins anew
///   finish           no gradient, but some rank had one  sets the stand-in
///
/// 1. Of what a rank keeps between steps, its part alone grows with the parameters.
/// 2. A backward that failed leaves some averages old, some new: drop the gradients after it.
///
/// Lives in one rank's process. Used by the thread that runs backward, but for reduce(), which
/// another thread calls once all gradients of the bucket have come.
class GradientShard {
 public:
  /// `parameters`: of one type and device, in the order of the bucket, the same on all ranks.
  /// `in_main_memory`: this rank's averages are there, and else on that device.
  GradientShard(std::vector<NamedTensor> parameters, int rank, int ranks,
                bool in_main_memory = false);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  /// The runs of elements that are in this rank's part, as Partition::pieces_of has them.
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// How many reduce() needs room for.
  std::int64_t elements() const { return partition_.total() + partition_.part; }

  /// Autograd is about to accumulate a gradient that is defined.
  void before_gradient(std::size_t parameter);
  /// Whether the parameter has a gradient that autograd made.
  bool has_gradient(std::size_t parameter) const;
  /// Throws std::logic_error, naming the parameter, where another tensor without memory is in the
  /// place of its stand-in, or was when before_gradient() came to it.
  void check_stand_in(std::size_t parameter);
  /// Averages the gradients of the parameters that have come in this backward, and drops them. A
  /// collective over the memory of the parameters' device. `room`: elements() of the type in which
  /// they are averaged, which nobody uses meanwhile.
  void reduce(Communicator& communicator, const std::vector<bool>& has_come,
              const at::Tensor& room);
  /// Backward has ended well. `anywhere`: some rank had a gradient of the parameter.
  void finish(std::size_t parameter, bool anywhere);

  /// Throws std::logic_error, naming the parameter, where a gradient on this rank is no average.
  void check_averages() const;
  /// Of one of pieces(), in the order of the parameter's memory; undefined where the parameter has
  /// no gradient. What is written to it stays until the next backward.
  at::Tensor average(std::size_t piece) const;

 private:
  bool has_stand_in(std::size_t parameter) const;
  bool has_foreign(std::size_t parameter) const;
  [[noreturn]] void refuse_foreign(std::size_t parameter) const;
  at::Tensor own(const at::Tensor& part, const Piece& piece) const;
  void take(const at::Tensor& averages);

  const std::vector<NamedTensor> parameters_;
  const Partition partition_;
  const int rank_;
  const std::vector<Piece> pieces_;
  bool is_elsewhere_;                // the averages are not where gradients are reduced
  at::Tensor part_;                  // averages
  std::vector<at::Tensor> layouts_;  // of the parameters, as they were; without memory
  std::vector<at::Tensor> stand_ins_;
  std::vector<char> adds_;     // to its average; no bits, as two threads write side by side
  std::vector<char> foreign_;  // it was dropped, and is to be told of
};

}  // namespace troupe::train
