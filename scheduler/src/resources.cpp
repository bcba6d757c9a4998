#include <troupe/scheduler/resources.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::scheduler {

Amount Amount::units(double units) {
  if (!std::isfinite(units) || units < 0 || units > 1e12) {
    throw std::invalid_argument(
        fmt::format("an amount of a resource lies between 0 and 10^12, and {} does not", units));
  }
  return Amount{std::llround(units * static_cast<double>(kPerUnit))};
}

Resources::Resources(std::initializer_list<std::pair<std::string_view, double>> units) {
  for (const auto& [name, amount] : units) set(name, of(name) + Amount::units(amount));
}

Amount Resources::of(std::string_view name) const {
  for (const auto& [ours, amount] : amounts_) {
    if (ours == name) return amount;
  }
  return {};
}

void Resources::set(std::string_view name, Amount amount) {
  const auto at =
      std::ranges::lower_bound(amounts_, name, {}, [](const auto& entry) { return std::string_view{entry.first}; });
  const bool present = at != amounts_.end() && at->first == name;
  if (amount.is_zero()) {
    if (present) amounts_.erase(at);
  } else if (present) {
    at->second = amount;
  } else {
    amounts_.emplace(at, std::string{name}, amount);
  }
}

bool Resources::covers(const Resources& part) const {
  return std::ranges::all_of(part.amounts_, [&](const auto& entry) { return of(entry.first) >= entry.second; });
}

Resources Resources::missing(const Resources& part) const { return part.without(*this); }

bool Resources::overlaps(const Resources& other) const {
  return std::ranges::any_of(other.amounts_, [&](const auto& entry) { return !of(entry.first).is_zero(); });
}

Resources Resources::without(const Resources& part) const {
  Resources left;
  for (const auto& [name, amount] : amounts_) {
    if (const auto taken = part.of(name); taken < amount) left.amounts_.emplace_back(name, amount - taken);
  }
  return left;
}

Resources& Resources::operator+=(const Resources& other) {
  for (const auto& [name, amount] : other.amounts_) set(name, of(name) + amount);
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  for (const auto& [name, amount] : other.amounts_) set(name, of(name) - amount);
  return *this;
}

Resources times(const Resources& resources, std::int64_t count) {
  Resources product;
  for (const auto& [name, amount] : resources) product.set(name, amount * count);
  return product;
}

std::string to_string(const Resources& resources) {
  std::string text;
  for (const auto& [name, amount] : resources) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, amount.units());
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace troupe::scheduler
