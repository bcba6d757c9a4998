#include <troupe/tune/domain.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

double real(const Scalar& scalar) { return std::get<double>(scalar.value()); }
std::int64_t whole(const Scalar& scalar) { return std::get<std::int64_t>(scalar.value()); }

[[noreturn]] void refuse(const Domain& domain, std::string_view why) {
  throw std::invalid_argument(fmt::format("{}: {}", to_string(domain), why));
}

bool is_finite(const Scalar& scalar) {
  const auto* number = std::get_if<double>(&scalar.value());
  return !number || std::isfinite(*number);
}

/// A rounded result must not reach the upper bound, which is not part of the range.
double clamped(double x, double low, double high) {
  return low == high ? low : std::clamp(x, low, std::nextafter(high, low));
}

}  // namespace

Domain::Domain(Kind kind, std::vector<Scalar> values) : kind_{kind}, values_{std::move(values)} {
  if (values_.empty()) refuse(*this, "there is no value to choose");
  if (!std::ranges::all_of(values_, is_finite)) refuse(*this, "every value has to be finite");
  if (kind == Kind::Uniform || kind == Kind::LogUniform) {
    if (real(values_[0]) > real(values_[1]))
      refuse(*this, "the lower bound is above the upper one");
    if (kind == Kind::LogUniform && real(values_[0]) <= 0)
      refuse(*this, "a logarithm needs a lower bound above 0");
    if (!std::isfinite(real(values_[1]) - real(values_[0])))
      refuse(*this, "the range is too wide for a double");
  }
  if (kind == Kind::Integer && whole(values_[0]) > whole(values_[1])) {
    refuse(*this, "the lower bound is above the upper one");
  }
}

Scalar Domain::sample(Random& random) const {
  switch (kind_) {
    case Kind::Constant:
      return values_.front();
    case Kind::Choice:
    case Kind::Grid:
      return values_[random.below(values_.size())];
    case Kind::Uniform: {
      const double low = real(values_[0]), high = real(values_[1]);
      return clamped(low + random.unit() * (high - low), low, high);
    }
    case Kind::LogUniform: {
      const double low = real(values_[0]), high = real(values_[1]);
      return clamped(std::exp(std::log(low) + random.unit() * (std::log(high) - std::log(low))),
                     low, high);
    }
    case Kind::Integer:
      break;
  }
  const auto low = static_cast<std::uint64_t>(whole(values_[0]));
  const auto span = static_cast<std::uint64_t>(whole(values_[1])) - low + 1;  // 0: all of the 2^64
  return static_cast<std::int64_t>(low + (span == 0 ? random.next() : random.below(span)));
}

bool Domain::contains(const Scalar& value) const {
  if (kind_ == Kind::Integer) {
    const auto* number = std::get_if<std::int64_t>(&value.value());
    return number && whole(values_[0]) <= *number && *number <= whole(values_[1]);
  }
  if (kind_ == Kind::Uniform || kind_ == Kind::LogUniform) {
    const auto* number = std::get_if<double>(&value.value());
    const double low = real(values_[0]), high = real(values_[1]);
    return number && low <= *number && (*number < high || low == high);
  }
  return std::ranges::find(values_, value) != values_.end();
}

std::optional<Range> Domain::range() const {
  if (kind_ == Kind::Integer) {
    return Range{.low = static_cast<double>(whole(values_[0])),
                 .high = static_cast<double>(whole(values_[1])),
                 .step = 1};
  }
  if (kind_ != Kind::Uniform && kind_ != Kind::LogUniform) return std::nullopt;
  return Range{
      .low = real(values_[0]), .high = real(values_[1]), .is_log = kind_ == Kind::LogUniform};
}

Scalar Domain::nearest(double x) const {
  assert(kind_ == Kind::Uniform || kind_ == Kind::LogUniform || kind_ == Kind::Integer);
  if (kind_ != Kind::Integer) return clamped(x, real(values_[0]), real(values_[1]));
  const auto low = whole(values_[0]), high = whole(values_[1]);
  // Compared as real numbers first: one beyond 2^63 has no integer.
  if (x <= static_cast<double>(low)) return low;
  if (x >= static_cast<double>(high)) return high;
  return std::clamp(static_cast<std::int64_t>(std::llround(x)), low, high);
}

Domain uniform(double low, double high) { return {Domain::Kind::Uniform, {low, high}}; }
Domain loguniform(double low, double high) { return {Domain::Kind::LogUniform, {low, high}}; }
Domain integer(std::int64_t low, std::int64_t high) { return {Domain::Kind::Integer, {low, high}}; }
Domain choice(std::vector<Scalar> values) { return {Domain::Kind::Choice, std::move(values)}; }
Domain grid(std::vector<Scalar> values) { return {Domain::Kind::Grid, std::move(values)}; }

std::string to_string(const Domain& domain) {
  constexpr std::string_view names[] = {"", "uniform", "loguniform", "integer", "choice", "grid"};
  if (domain.kind() == Domain::Kind::Constant) return to_string(domain.values().front());
  std::string values;
  for (const auto& value : domain.values())
    values += (values.empty() ? "" : ", ") + to_string(value);
  return fmt::format("{}({})", names[static_cast<std::size_t>(domain.kind())], values);
}

}  // namespace troupe::tune
