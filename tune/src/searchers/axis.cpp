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

/// Of an ordinal, that of its values' places.
std::optional<Range> range_of(const Domain& domain) {
  if (domain.kind() != Domain::Kind::Ordinal) return domain.range();
  return Range{.low = 0, .high = static_cast<double>(domain.values().size()) - 1, .step = 1};
}

bool has_single_value(const Domain& domain) {
  if (const auto range = domain.range()) return range->low == range->high;
  return domain.values().size() == 1;
}

}  // namespace

Axis::Axis(Dimension field) : field_{std::move(field)} {
  if (has_single_value(field_.domain)) {
    throw std::invalid_argument(
        fmt::format("field '{}' has a single value, so that there is nothing to search", name()));
  }
  const auto range = range_of(field_.domain);
  if (!range) {
    values_ = static_cast<double>(field_.domain.values().size());
    return;
  }
  mean_ = range->mean;
  deviation_ = range->deviation;
  // A normal distribution has no count of steps: they are rounded to as values are made.
  kind_ = range->step > 0 && deviation_ == 0 ? Kind::Integer : Kind::Real;
  if (kind_ == Kind::Integer) {
    step_ = range->step;
    values_ = std::round((range->high - range->low) / step_) + 1;
  }
  is_log_ = range->is_log;
  low_ = range->low - step_ / 2;
  high_ = range->high + step_ / 2;
  if (!is_log_) return;
  low_ = std::log(low_);
  high_ = std::log(high_);
}

double Axis::clamped(double coordinate) const {
  return coordinate > 0 ? std::min(coordinate, 1.0) : 0.0;  // nan too becomes 0
}

/// Of an ordinal, its place.
double Axis::number_of(const Scalar& value) const {
  const auto& values = field_.domain.values();
  if (field_.domain.kind() == Domain::Kind::Ordinal)
    return static_cast<double>(std::ranges::find(values, value) - values.begin());
  if (const auto* whole = std::get_if<std::int64_t>(&value.value()))
    return static_cast<double>(*whole);
  return std::get<double>(value.value());
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

Scalar Axis::value_at(double coordinate) const {
  if (kind_ == Kind::Category) return field_.domain.values()[category_at(coordinate)];
  const auto number = number_at(clamped(coordinate));
  if (field_.domain.kind() != Domain::Kind::Ordinal) return field_.domain.nearest(number);
  const auto place = std::clamp(std::round(number), 0.0, values_ - 1);
  return field_.domain.values()[static_cast<std::size_t>(place)];
}

double Axis::coordinate_of(const Scalar& value) const {
  if (!field_.domain.contains(value)) {
    throw std::invalid_argument(fmt::format("field '{}': {} is not in {}", name(), to_string(value),
                                            to_string(field_.domain)));
  }
  if (kind_ != Kind::Category) return coordinate_of_number(number_of(value));
  const auto& values = field_.domain.values();
  return coordinate_of_category(
      static_cast<std::size_t>(std::ranges::find(values, value) - values.begin()));
}

double Axis::settled(double coordinate) const {
  if (kind_ == Kind::Real) return clamped(coordinate);
  if (kind_ == Kind::Category) return coordinate_of_category(category_at(coordinate));
  return coordinate_of_number(number_of(value_at(coordinate)));
}

std::pair<double, double> Axis::cell(double coordinate) const {
  if (kind_ == Kind::Real) return {clamped(coordinate), clamped(coordinate)};
  if (kind_ == Kind::Category) {
    const auto category = static_cast<double>(category_at(coordinate));
    return {category / values_, (category + 1) / values_};
  }
  const double number = number_of(value_at(coordinate));
  return {coordinate_of_number(number - step_ / 2), coordinate_of_number(number + step_ / 2)};
}

Axes::Axes(const SearchSpace& space) : space_{space} {
  for (const auto& field : space_) {
    if (!has_single_value(field.domain)) axes_.emplace_back(field);
  }
}

Configuration Axes::configuration(std::span<const double> point) const {
  assert(point.size() == axes_.size());
  Configuration configuration;
  std::size_t axis = 0;
  for (const auto& [name, domain] : space_) {
    const bool is_searched = axis < axes_.size() && axes_[axis].name() == name;
    configuration.emplace_back(
        name, is_searched ? axes_[axis].value_at(point[axis]) : domain.values().front());
    if (is_searched) ++axis;
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
