#include "searchers/axis.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "searchers/normal.hpp"

namespace troupe::tune {
namespace {

/// Of a normal distribution beyond it, on either side, nothing is searched: seven deviations.
constexpr double kFarthest = 1e-12;

bool has_single_value(const Domain& domain) {
  if (const auto last = domain.last_step()) return *last == 0;
  if (const auto range = domain.range()) return range->low == range->high;
  return domain.values().size() == 1;
}

/// Of an ordinal too, whose values are numbered in their order.
std::optional<Places> places_in(const Domain& domain) {
  if (domain.kind() != Domain::Kind::Ordinal) return places_of(domain);
  return Places(domain.values().size() - 1);
}

}  // namespace

Axis::Axis(Dimension field) : field_{std::move(field)} {
  if (has_single_value(field_.domain)) {
    throw std::invalid_argument(
        fmt::format("field '{}' has a single value, so that there is nothing to search", name()));
  }
  places_ = places_in(field_.domain);
  if (places_) {
    kind_ = Kind::Integer;
    values_ = static_cast<double>(places_->last()) + 1;
    return;
  }
  const auto range = field_.domain.range();
  if (!range) {
    values_ = static_cast<double>(field_.domain.values().size());
    return;
  }
  // A normal distribution has no count of steps: they are rounded to as values are made.
  kind_ = Kind::Real;
  mean_ = range->mean;
  deviation_ = range->deviation;
  is_log_ = range->is_log;
  low_ = is_log_ ? std::log(range->low) : range->low;
  high_ = is_log_ ? std::log(range->high) : range->high;
}

double Axis::clamped(double coordinate) const {
  return coordinate > 0 ? std::min(coordinate, 1.0) : 0.0;  // nan too becomes 0
}

/// Of a category or an ordinal.
std::size_t Axis::place_in_list(const Scalar& value) const {
  const auto& values = field_.domain.values();
  return static_cast<std::size_t>(std::ranges::find(values, value) - values.begin());
}

double Axis::number_at(double coordinate) const {
  if (deviation_ > 0) {
    const auto inside = std::clamp(coordinate, kFarthest, 1 - kFarthest);
    return mean_ + deviation_ * normal_quantile(inside);
  }
  const double number = low_ + coordinate * (high_ - low_);
  return is_log_ ? std::exp(number) : number;
}

double Axis::coordinate_of_number(double number) const {
  if (deviation_ > 0) return clamped(normal_cdf((number - mean_) / deviation_));
  return clamped(((is_log_ ? std::log(number) : number) - low_) / (high_ - low_));
}

std::size_t Axis::category_at(double coordinate) const {
  assert(kind_ == Kind::Category);
  const auto count = field_.domain.values().size();
  return std::min(static_cast<std::size_t>(clamped(coordinate) * values_), count - 1);
}

double Axis::coordinate_of_category(std::size_t category) const {
  return (static_cast<double>(category) + 0.5) / values_;
}

Scalar Axis::value_at(double coordinate, Random random) const {
  if (kind_ == Kind::Category) return field_.domain.values()[category_at(coordinate)];
  if (kind_ == Kind::Real) return field_.domain.nearest(number_at(clamped(coordinate)));
  const auto number = places_->number_at(clamped(coordinate), random);
  if (field_.domain.kind() == Domain::Kind::Ordinal)
    return field_.domain.values()[static_cast<std::size_t>(number)];
  return field_.domain.at_step(number);
}

double Axis::coordinate_of(const Scalar& value) const {
  if (!field_.domain.contains(value)) {
    throw std::invalid_argument(fmt::format("field '{}': {} is not in {}", name(), to_string(value),
                                            to_string(field_.domain)));
  }
  if (kind_ == Kind::Category) return coordinate_of_category(place_in_list(value));
  if (kind_ == Kind::Real) return coordinate_of_number(std::get<double>(value.value()));
  const bool is_listed = field_.domain.kind() == Domain::Kind::Ordinal;
  const auto number = is_listed ? place_in_list(value) : field_.domain.steps_to(value);
  return places_->middle(places_->block_of(number));
}

double Axis::settled(double coordinate) const {
  if (kind_ == Kind::Real) return clamped(coordinate);
  if (kind_ == Kind::Category) return coordinate_of_category(category_at(coordinate));
  return places_->middle(places_->at(coordinate));
}

std::pair<double, double> Axis::cell(double coordinate) const {
  if (kind_ == Kind::Real) return {clamped(coordinate), clamped(coordinate)};
  if (kind_ == Kind::Integer) return places_->cell(places_->at(coordinate));
  const auto category = static_cast<double>(category_at(coordinate));
  return {category / values_, (category + 1) / values_};
}

std::optional<double> Axis::neighbour(double coordinate, bool is_above) const {
  assert(kind_ == Kind::Integer);
  const auto [first, size] = places_->at(coordinate);
  if (is_above ? places_->last() - first < size : first == 0) return std::nullopt;
  return places_->middle(places_->block_of(is_above ? first + size : first - 1));
}

Axes::Axes(const SearchSpace& space) : space_{space} {
  for (const auto& field : space_) {
    if (!has_single_value(field.domain)) axes_.emplace_back(field);
  }
}

Configuration Axes::configuration(std::span<const double> point, std::uint64_t seed,
                                  TrialId trial) const {
  assert(point.size() == axes_.size());
  Configuration configuration;
  std::size_t axis = 0;
  for (const auto& [name, domain] : space_) {
    const bool is_searched = axis < axes_.size() && axes_[axis].name() == name;
    if (!is_searched) {
      configuration.emplace_back(name, domain.values().front());
      continue;
    }
    configuration.emplace_back(
        name, axes_[axis].value_at(point[axis], Random(seed, trial, "block of " + name)));
    ++axis;
  }
  return configuration;
}

std::vector<double> Axes::point(const Configuration& configuration) const {
  std::vector<double> point;
  for (const auto& axis : axes_) {
    const auto field =
        std::ranges::find(configuration, axis.name(), &Configuration::value_type::first);
    if (field == configuration.end())
      throw std::invalid_argument(fmt::format("field '{}' is missing", axis.name()));
    point.push_back(axis.coordinate_of(field->second));
  }
  return point;
}

}  // namespace troupe::tune
