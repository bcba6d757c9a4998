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

Amount Resources::other(std::string_view name) const {
  for (const auto& [ours, amount] : others_) {
    if (ours == name) return amount;
  }
  return {};
}

void Resources::set_other(std::string_view name, Amount amount) {
  const auto at = std::ranges::lower_bound(
      others_, name, {}, [](const auto& entry) { return std::string_view{entry.first}; });
  const bool present = at != others_.end() && at->first == name;
  if (amount.is_zero()) {
    if (present) others_.erase(at);
  } else if (present) {
    at->second = amount;
  } else {
    others_.emplace(at, std::string{name}, amount);
  }
}

Resources::Entries Resources::entries() const {
  Entries all;
  if (!cpu_.is_zero()) all.emplace_back(kCpu, cpu_);
  if (!gpu_.is_zero()) all.emplace_back(kGpu, gpu_);
  if (others_.empty()) return all;
  all.insert(all.end(), others_.begin(), others_.end());
  std::ranges::sort(all);
  return all;
}

bool Resources::covers_others(const Resources& part) const {
  return std::ranges::all_of(part.others_,
                             [&](const auto& entry) { return other(entry.first) >= entry.second; });
}

bool Resources::overlaps(const Resources& part) const {
  if (!cpu_.is_zero() && !part.cpu_.is_zero()) return true;
  if (!gpu_.is_zero() && !part.gpu_.is_zero()) return true;
  return std::ranges::any_of(part.others_,
                             [&](const auto& entry) { return !other(entry.first).is_zero(); });
}

Resources Resources::without(const Resources& part) const {
  const auto rest = [](Amount ours, Amount taken) {
    return taken < ours ? ours - taken : Amount{};
  };
  Resources left;
  left.cpu_ = rest(cpu_, part.cpu_);
  left.gpu_ = rest(gpu_, part.gpu_);
  for (const auto& [name, amount] : others_) {
    if (const auto some = rest(amount, part.other(name)); !some.is_zero())
      left.others_.emplace_back(name, some);
  }
  return left;
}

void Resources::add_others(const Resources& more) {
  for (const auto& [name, amount] : more.others_) set_other(name, other(name) + amount);
}

void Resources::subtract_others(const Resources& less) {
  for (const auto& [name, amount] : less.others_) set_other(name, other(name) - amount);
}

void Resources::hash_others(std::size_t& hash) const {
  for (const auto& [name, amount] : others_) {
    boost::hash_combine(hash, name);
    boost::hash_combine(hash, amount.ticks());
  }
}

Resources times(const Resources& resources, std::int64_t count) {
  Resources product;
  if (!resources.has_others()) {
    product.set(kCpu, resources.cpu() * count);
    product.set(kGpu, resources.gpu() * count);
    return product;
  }
  for (const auto& [name, amount] : resources.entries()) product.set(name, amount * count);
  return product;
}

std::string to_string(const Resources& resources) {
  std::string text;
  for (const auto& [name, amount] : resources.entries()) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", name, amount.units(),
                        name == "memory" ? " GB" : "");
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace troupe::scheduler
