#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::train {

/// A run of elements of one parameter.
struct Piece {
  std::size_t parameter;
  std::int64_t first;  ///< within the parameter
  std::int64_t count;
  bool operator==(const Piece&) const = default;
};

/// Parameters that lie one behind the other in a flat buffer, cut into a part of equal size for
/// each rank. Pure, so that all ranks compute the same.
///
/// 1. Each element of each parameter is in the part of exactly one rank.
/// 2. Parameters and parts begin at multiples of kAlignment elements, so that kernels find them as
///    well aligned as in memory of their own.
struct Partition {
  static constexpr std::int64_t kAlignment = 64;

  std::vector<std::int64_t> sizes;    ///< of the parameters, in elements
  std::vector<std::int64_t> offsets;  ///< where each parameter begins
  std::int64_t part = 0;              ///< elements of a rank's part
  int ranks = 1;

  std::int64_t total() const { return part * ranks; }
  /// What is in a rank's part, in the order of the parameters.
  std::vector<Piece> pieces_of(int rank) const;
};

Partition partition(std::vector<std::int64_t> sizes, int ranks);

}  // namespace troupe::train
