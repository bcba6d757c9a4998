#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <troupe/tune/domain.hpp>

namespace troupe::tune {

/// The values of a range with steps, numbered from 0, side by side on [0, 1]: each has a cell, of the same width, or, in
/// a range of logarithms, from that of half a step below it to that of half a step above it. The numbers are integers
/// and not distances from zero, so that also neighbours far from zero have cells of their own. A value type.
///
/// A double has 53 bits. So a cell high up in a very long range is that of a block of neighbours, whose size is a power
/// of two: from number 2^50 on, in a range of logarithms from 2^43 on. A block has about 1/2^50 of the numbers below it
/// (1/2^43).
class Places {
 public:
  struct Block {
    std::uint64_t first = 0;
    std::uint64_t size = 1;  ///< 1 for all but very high numbers
  };

  /// `last` is the highest number. `below`: how many steps the lower bound is from zero, less half a step, where the
  /// logarithms are equally likely; 0: the values are. Asserts below >= 0.
  explicit Places(std::uint64_t last, double below = 0);

  std::uint64_t last() const { return last_; }
  /// The block at a coordinate; one outside of [0, 1] is moved to the nearer end.
  Block at(double coordinate) const;
  Block block_of(std::uint64_t number) const;
  /// The number at a coordinate; of a block it is one of its numbers, each equally likely. The ends of [0, 1] are the
  /// first and the last number. Draws from `random` only for a block of several.
  std::uint64_t number_at(double coordinate, Random& random) const;
  /// Both ends of a block's cell.
  std::pair<double, double> cell(const Block& block) const;
  /// The coordinate that stands for a block: in the middle of its numbers.
  double middle(const Block& block) const;

 private:
  double coordinate_of(double position) const;

  std::uint64_t last_;
  double below_;
  double count_;        // of the numbers
  double width_;        // of [0, 1], in logarithms; 0: it is none of logarithms
  std::uint64_t fine_;  // the lowest number whose block has several
};

/// Those of a range that has steps and a lower bound; none for any other domain.
std::optional<Places> places_of(const Domain& domain);

}  // namespace troupe::tune
