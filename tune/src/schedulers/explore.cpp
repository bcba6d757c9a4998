#include "schedulers/explore.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::tune {
namespace {

__extension__ using WideInteger = __int128;

Scalar neighbour(const Scalar& value, const Domain& domain, Random& random) {
  const auto& values = domain.values();
  const auto at = std::ranges::find(values, value);
  if (at == values.end()) return domain.sample(random);
  const auto index = at - values.begin();
  const auto last = static_cast<std::ptrdiff_t>(values.size()) - 1;
  const auto moved = index + (random.below(2) == 0 ? -1 : 1);
  return values[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(moved, 0, last))];
}

/// Where doubles do not hold all integers, only what is added is rounded: the number keeps its last digits.
Scalar product(std::int64_t whole, double factor) {
  constexpr double most = 1.9e19;  // more than any two integers are apart
  const double added = std::clamp(static_cast<double>(whole) * (factor - 1), -most, most);
  using Limits = std::numeric_limits<std::int64_t>;
  const auto moved = static_cast<WideInteger>(whole) + static_cast<WideInteger>(std::round(added));
  return static_cast<std::int64_t>(std::clamp<WideInteger>(moved, Limits::min(), Limits::max()));
}

/// The next value of a range with steps.
Scalar neighbour_step(const Scalar& value, const Domain& domain, bool is_above, double step) {
  const auto last = domain.last_step();
  if (!last) return domain.nearest(std::get<double>(value.value()) + (is_above ? step : -step));
  const auto steps = domain.steps_to(value);
  if (is_above) return domain.at_step(steps < *last ? steps + 1 : steps);
  return domain.at_step(steps > 0 ? steps - 1 : steps);
}

Scalar multiplied(const Scalar& value, const Domain& domain, const std::vector<double>& factors,
                  Random& random) {
  const auto factor = factors[random.below(factors.size())];
  const auto* real = std::get_if<double>(&value.value());
  const auto* whole = std::get_if<std::int64_t>(&value.value());
  const auto range = domain.range();
  if (!range || (!real && !whole)) return domain.sample(random);
  const auto number = real ? *real : static_cast<double>(*whole);
  const bool is_exact = !whole || std::max(1.0, factor) * std::abs(number) < 0x1p53;
  const auto moved =
      is_exact ? domain.nearest(number * factor) : domain.nearest_to(product(*whole, factor));
  // Small numbers would be rounded back to themselves for ever.
  if (range->step > 0 && moved == value && factor != 1)
    return neighbour_step(value, domain, (factor > 1) == (number >= 0), range->step);
  return moved;
}

}  // namespace

Scalar explored(const Scalar& value, const Domain& domain, const Explore& how, Random& random) {
  using Kind = Domain::Kind;
  if (domain.kind() == Kind::Constant) return domain.values().front();
  if (random.unit() < how.resample) return domain.sample(random);
  if (domain.kind() == Kind::Choice || domain.kind() == Kind::Grid ||
      domain.kind() == Kind::Ordinal)
    return neighbour(value, domain, random);
  return multiplied(value, domain, how.factors, random);
}

Configuration explored(Configuration donor, const Explore& how, std::uint64_t seed,
                       std::uint64_t draw) {
  for (const auto& [name, domain] : how.mutate) {
    Random random(seed, draw, "explore " + name);
    const auto field = std::ranges::find(donor, name, &Configuration::value_type::first);
    if (field == donor.end()) {
      donor.emplace_back(name, domain.sample(random));
    } else {
      field->second = explored(field->second, domain, how, random);
    }
  }
  return donor;
}

}  // namespace troupe::tune
