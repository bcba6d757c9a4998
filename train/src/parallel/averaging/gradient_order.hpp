#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

/// The order in which a model's gradients have come in a backward, which the ranks then agree on. A
/// value of one rank.
class GradientOrder {
 public:
  /// The parameters are numbered from 0.
  explicit GradientOrder(std::size_t parameters) : parameters_(parameters) {}

  void note(std::size_t parameter) { come_.push_back(static_cast<std::int64_t>(parameter)); }
  void forget() { come_.clear(); }
  /// A collective: rank 0's order of all parameters. Those whose gradients have not come there are
  /// the last ones, from the end of the model on, as backward would come to them.
  std::vector<std::int64_t> agree(Communicator& control) const;

 private:
  std::size_t parameters_;
  std::vector<std::int64_t> come_;
};

}  // namespace troupe::train
