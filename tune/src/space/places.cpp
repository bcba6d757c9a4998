#include "space/places.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace troupe::tune {
namespace {

// A position comes back from its coordinate with a relative error of 2^-52, and of 2^-46 by way of a logarithm.
constexpr std::uint64_t kFine = std::uint64_t{1} << 50;
constexpr std::uint64_t kFineOfLogarithms = std::uint64_t{1} << 43;

double clamped(double coordinate) {
  return coordinate > 0 ? std::min(coordinate, 1.0) : 0.0;  // nan too becomes 0
}

}  // namespace

Places::Places(std::uint64_t last, double below)
    : last_{last},
      below_{below},
      count_{static_cast<double>(last) + 1},
      width_{below > 0 ? std::log1p(count_ / below) : 0},
      fine_{below > 0 ? kFineOfLogarithms : kFine} {
  assert(below >= 0);
}

Places::Block Places::at(double coordinate) const {
  const double within = clamped(coordinate);
  const double position = width_ > 0 ? std::expm1(within * width_) * below_ : within * count_;
  // Compared as real numbers: 2^64 has no number.
  if (position >= count_ || within == 1) return block_of(last_);
  return block_of(std::min(static_cast<std::uint64_t>(position), last_));
}

Places::Block Places::block_of(std::uint64_t number) const {
  if (number < fine_) return {number, 1};
  const auto size = std::bit_floor(number) / fine_;
  const auto first = number - number % size;
  return {first, std::min(size - 1, last_ - first) + 1};
}

std::uint64_t Places::number_at(double coordinate, Random& random) const {
  if (coordinate >= 1) return last_;
  const auto [first, size] = at(coordinate);
  return size == 1 ? first : first + random.below(size);
}

double Places::coordinate_of(double position) const {
  return clamped(width_ > 0 ? std::log1p(position / below_) / width_ : position / count_);
}

std::pair<double, double> Places::cell(const Block& block) const {
  const auto first = static_cast<double>(block.first);
  return {coordinate_of(first), coordinate_of(first + static_cast<double>(block.size))};
}

double Places::middle(const Block& block) const {
  return coordinate_of(static_cast<double>(block.first) + static_cast<double>(block.size) / 2);
}

std::optional<Places> places_of(const Domain& domain) {
  const auto last = domain.last_step();
  if (!last) return std::nullopt;
  const auto range = *domain.range();
  return Places(*last, range.is_log ? range.low / range.step - 0.5 : 0);
}

}  // namespace troupe::tune
