#include "searchers/quasi_random/sequences.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include <troupe/tune/random.hpp>

namespace troupe::tune {
namespace {

constexpr int kBits = 53;  // of a double in [0, 1)

std::vector<std::uint64_t> scrambling_keys(std::size_t dimensions,
                                           std::optional<std::uint64_t> seed,
                                           std::string_view sequence) {
  std::vector<std::uint64_t> keys;
  if (!seed) return keys;
  for (std::size_t dimension = 0; dimension < dimensions; ++dimension)
    keys.push_back(Random(*seed, dimension, sequence).next());
  return keys;
}

/// Flips each bit, or not, as a coin says that is thrown for the bits above it (Owen, 1995, section
/// 4): two fractions keep the length of their common beginning.
std::uint64_t nested_scrambled(std::uint64_t fraction, std::uint64_t key) {
  std::uint64_t scrambled = 0;
  for (int bit = 0; bit < kBits; ++bit) {
    const auto above = std::uint64_t{1} << bit | (bit == 0 ? 0 : fraction >> (64 - bit));
    const auto coin = Random(key, above, {}).next() >> 63;
    scrambled = scrambled << 1 | ((fraction >> (63 - bit) & 1) ^ coin);
  }
  return scrambled << (64 - kBits);
}

std::vector<std::uint32_t> first_primes(std::size_t count) {
  std::vector<std::uint32_t> primes;
  for (std::uint32_t number = 2; primes.size() < count; ++number) {
    if (std::ranges::none_of(primes, [&](auto prime) { return number % prime == 0; }))
      primes.push_back(number);
  }
  return primes;
}

/// Where a random permutation of 0 ... base-1 takes a digit.
std::uint32_t permuted(std::uint32_t digit, std::uint32_t base, std::uint64_t key, int place) {
  std::vector<std::uint32_t> digits(base);
  std::iota(digits.begin(), digits.end(), 0u);
  Random random(key, static_cast<std::uint64_t>(place), {});
  for (auto left = base; left > 1; --left) std::swap(digits[left - 1], digits[random.below(left)]);
  return digits[digit];
}

/// The digits of `index` behind the point, the lowest one first. Scrambled, the zeros that follow
/// are permuted too, as far as a double sees them.
double mirrored(std::uint64_t index, std::uint32_t base, const std::uint64_t* key) {
  double sum = 0, scale = 1.0 / base;
  for (int place = 0; key ? scale > 0x1p-54 : index > 0; ++place, index /= base, scale /= base) {
    const auto digit = static_cast<std::uint32_t>(index % base);
    sum += scale * (key ? permuted(digit, base, *key, place) : digit);
  }
  return std::min(sum, 1 - 0x1p-53);
}

}  // namespace

SobolSequence::SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> seed)
    : dimensions_{dimensions}, keys_{scrambling_keys(dimensions, seed, "sobol")} {
  assert(dimensions <= kMostDimensions);
  if (dimensions > 0) engine_.emplace(dimensions);
}

std::vector<double> SobolSequence::point(std::uint64_t index) {
  // The engine begins with point 1.
  if (engine_ && index > 0) engine_->seed(index - 1);
  std::vector<double> point(dimensions_);
  for (std::size_t dimension = 0; dimension < dimensions_; ++dimension) {
    auto fraction = index > 0 ? (*engine_)() : 0;
    if (!keys_.empty()) fraction = nested_scrambled(fraction, keys_[dimension]);
    point[dimension] = static_cast<double>(fraction >> (64 - kBits)) * 0x1p-53;
  }
  return point;
}

HaltonSequence::HaltonSequence(std::size_t dimensions, std::optional<std::uint64_t> seed)
    : bases_{first_primes(dimensions)}, keys_{scrambling_keys(dimensions, seed, "halton")} {
  assert(dimensions <= kMostDimensions);
}

std::vector<double> HaltonSequence::point(std::uint64_t index) const {
  std::vector<double> point;
  for (std::size_t dimension = 0; dimension < bases_.size(); ++dimension)
    point.push_back(
        mirrored(index, bases_[dimension], keys_.empty() ? nullptr : &keys_[dimension]));
  return point;
}

}  // namespace troupe::tune
