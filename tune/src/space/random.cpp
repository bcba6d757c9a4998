#include <troupe/tune/random.hpp>

#include <cassert>

namespace troupe::tune {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t index, std::string_view name)
    : state_{mixed(mixed(mixed(seed + kStep) ^ index) + kStep) ^ fnv1a(name)} {}

std::uint64_t Random::next() { return mixed(state_ += kStep); }

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

std::uint64_t Random::below(std::uint64_t bound) {
  assert(bound > 0);
  auto product = static_cast<Wide>(next()) * bound;
  for (const auto smallest_fair = -bound % bound;
       static_cast<std::uint64_t>(product) < smallest_fair;) {
    product = static_cast<Wide>(next()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace troupe::tune
