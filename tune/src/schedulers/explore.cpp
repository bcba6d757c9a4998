#include "schedulers/explore.hpp"

#include <algorithm>

namespace troupe::tune {
namespace {

Scalar neighbour(const Scalar& value, const Domain& domain, Random& random) {
  const auto& values = domain.values();
  const auto at = std::ranges::find(values, value);
  if (at == values.end()) return domain.sample(random);
  const auto index = at - values.begin();
  const auto last = static_cast<std::ptrdiff_t>(values.size()) - 1;
  const auto moved = index + (random.below(2) == 0 ? -1 : 1);
  return values[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(moved, 0, last))];
}

Scalar multiplied(const Scalar& value, const Domain& domain, const std::vector<double>& factors,
                  Random& random) {
  const auto factor = factors[random.below(factors.size())];
  const auto* real = std::get_if<double>(&value.value());
  const auto* whole = std::get_if<std::int64_t>(&value.value());
  const auto range = domain.range();
  if (!range || (!real && !whole)) return domain.sample(random);
  const auto number = real ? *real : static_cast<double>(*whole);
  auto moved = domain.nearest(number * factor);
  // Small numbers would be rounded back to themselves for ever.
  if (range->step > 0 && moved == value && factor != 1)
    moved = domain.nearest(number + ((factor > 1) == (number >= 0) ? range->step : -range->step));
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
