#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::train {

struct SamplerOptions {
  bool shuffle = true;
  /// The same on every rank; Context::sampler and Context::loader add the run's seed to it.
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< true: leave the tail out instead of repeating the head
};

/// Which rows of a data set a rank sees in an epoch. As PyTorch's DistributedSampler: all rows in
/// order, or permuted by (seed + epoch); made divisible by the number of ranks by repeating from
/// the head (or by leaving the tail out); rank r takes r, r + ranks, r + 2 ranks, ... So all ranks
/// see equally many rows, and take equally many steps.
///
/// The permutation is Fisher and Yates' with std::mt19937_64 seeded by seed + epoch, and is the
/// same on every machine and with every standard library; it is not the one that PyTorch's
/// generator gives. A pure value; any thread.
class DistributedSampler {
 public:
  /// Throws std::invalid_argument unless 0 <= rank < ranks.
  DistributedSampler(std::size_t rows, int rank, int ranks, SamplerOptions options = {});

  /// Without it, every epoch has the same order.
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }

  /// Of this rank, in order. Cost: O(rows).
  std::vector<std::int64_t> indices() const;
  /// How many indices() has, on every rank.
  std::size_t size() const;

 private:
  std::vector<std::int64_t> order() const;

  std::size_t rows_;
  std::size_t rank_;
  std::size_t ranks_;
  SamplerOptions options_;
  std::uint64_t epoch_ = 0;
};

}  // namespace troupe::train
