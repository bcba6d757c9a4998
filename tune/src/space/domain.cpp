#include <troupe/tune/domain.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include <fmt/format.h>

#include "space/decimal.hpp"
#include "space/places.hpp"

namespace troupe::tune {
namespace {

constexpr auto kEndless = std::numeric_limits<double>::infinity();
constexpr double kMostSteps = 1e15;

double real(const Scalar& scalar) { return std::get<double>(scalar.value()); }
std::int64_t whole(const Scalar& scalar) { return std::get<std::int64_t>(scalar.value()); }

double number(const Scalar& scalar) {
  const auto* integer = std::get_if<std::int64_t>(&scalar.value());
  return integer ? static_cast<double>(*integer) : real(scalar);
}

/// What a quotient that counts steps may be short of a whole number, by rounding.
double rounding_of(double steps) { return 1e-9 + steps * 0x1p-52; }

Scalar without_negative_zero(const Scalar& value) {
  const auto* number = std::get_if<double>(&value.value());
  return number && *number == 0 ? Scalar(0.0) : value;
}

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
  check_bounds();
  check_step();
  if (range()) std::ranges::transform(values_, values_.begin(), without_negative_zero);
  for (std::size_t i = 1; kind == Kind::Ordinal && i < values_.size(); ++i) {
    if (std::find(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(i), values_[i]) !=
        values_.begin() + static_cast<std::ptrdiff_t>(i))
      refuse(*this, "a value stands in it twice");
  }
}

void Domain::check_bounds() const {
  const bool is_real = kind_ == Kind::Uniform || kind_ == Kind::LogUniform;
  if (kind_ == Kind::Normal && real(values_[1]) <= 0)
    refuse(*this, "the deviation has to be above 0");
  if ((is_real && real(values_[0]) > real(values_[1])) ||
      (is_whole() && whole(values_[0]) > whole(values_[1])))
    refuse(*this, "the lower bound is above the upper one");
  if ((kind_ == Kind::LogUniform && real(values_[0]) <= 0) ||
      (kind_ == Kind::LogInteger && whole(values_[0]) <= 0))
    refuse(*this, "a logarithm needs a lower bound above 0");
  if (is_real && !std::isfinite(real(values_[1]) - real(values_[0])))
    refuse(*this, "the range is too wide for a double");
}

void Domain::check_step() const {
  const bool has_values = kind_ == Kind::Constant || kind_ == Kind::Choice || kind_ == Kind::Grid ||
                          kind_ == Kind::Ordinal;
  if (has_values || values_.size() < 3) return;
  if (!(number(values_[2]) > 0)) refuse(*this, "the step has to be above 0");
  if (kind_ == Kind::LogUniform && real(values_[2]) > real(values_[0]))
    refuse(*this, "the step of a logarithmic range has to be at most its lower bound");
  if (kind_ != Kind::Uniform && kind_ != Kind::LogUniform) return;
  const double low = real(values_[0]), high = real(values_[1]), each = real(values_[2]);
  if ((high - low) / each > kMostSteps)
    refuse(*this, "there are more steps than a double can count");
  const double largest = std::max(std::abs(low), std::abs(high));
  if (low < high && std::nextafter(largest, kEndless) - largest > each)
    refuse(*this, "a double does not tell neighbours apart that are so near each other");
}

// ---- domains with a step ------------------------------------------------------------------------

bool Domain::is_whole() const { return kind_ == Kind::Integer || kind_ == Kind::LogInteger; }

/// 0: there is none.
double Domain::step() const { return values_.size() < 3 ? 0 : number(values_[2]); }

std::optional<std::uint64_t> Domain::last_step() const {
  if (is_whole()) {
    const auto low = static_cast<std::uint64_t>(whole(values_[0]));
    const auto span = static_cast<std::uint64_t>(whole(values_[1])) - low;
    return values_.size() < 3 ? span : span / static_cast<std::uint64_t>(whole(values_[2]));
  }
  if ((kind_ != Kind::Uniform && kind_ != Kind::LogUniform) || values_.size() < 3)
    return std::nullopt;
  const double low = real(values_[0]), high = real(values_[1]);
  if (const auto steps = written_steps(low, high, step())) return steps;
  const double steps = (high - low) / step();
  return static_cast<std::uint64_t>(steps + rounding_of(steps));
}

Scalar Domain::at_step(std::uint64_t steps) const {
  assert(is_whole() || (kind_ != Kind::Normal && step() > 0));
  if (is_whole()) {
    const auto each = values_.size() < 3 ? 1 : static_cast<std::uint64_t>(whole(values_[2]));
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(whole(values_[0])) + steps * each);
  }
  const double low = real(values_[0]), high = real(values_[1]);
  if (const auto value = written_sum(low, static_cast<std::int64_t>(steps), step()))
    return std::min(*value, high);
  // Of numbers that nobody wrote, as a third: what is zero, or the upper bound, but for rounding, is that.
  const double value = low + static_cast<double>(steps) * step();
  const double rounding = rounding_of(static_cast<double>(steps)) * step();
  if (std::abs(value) < rounding) return 0.0;
  return value + rounding > high ? high : value;
}

std::uint64_t Domain::steps_to(const Scalar& value) const {
  assert(contains(value));
  if (is_whole()) {
    const auto each = values_.size() < 3 ? 1 : static_cast<std::uint64_t>(whole(values_[2]));
    return (static_cast<std::uint64_t>(whole(value)) -
            static_cast<std::uint64_t>(whole(values_[0]))) /
           each;
  }
  return steps_near(real(value));
}

/// Of a range of real numbers: to the point that is nearest to an x in it.
std::uint64_t Domain::steps_near(double x) const {
  const auto last = *last_step();
  const auto about = std::llround((x - real(values_[0])) / step());
  auto best = std::min(static_cast<std::uint64_t>(about), last);
  const auto distance = [&](std::uint64_t steps) { return std::abs(real(at_step(steps)) - x); };
  // Rounding moves the quotient by up to one where a step is hardly more than the distance between two doubles.
  const auto below = best > 0 ? best - 1 : best, above = best < last ? best + 1 : best;
  for (const auto steps : {below, above}) {
    if (distance(steps) < distance(best)) best = steps;
  }
  return best;
}

// ---- values -------------------------------------------------------------------------------------

Scalar Domain::sample(Random& random) const {
  switch (kind_) {
    case Kind::Constant:
      return values_.front();
    case Kind::Choice:
    case Kind::Grid:
    case Kind::Ordinal:
      return values_[random.below(values_.size())];
    case Kind::Uniform: {
      if (step() > 0) return at_step(random.below(*last_step() + 1));
      const double low = real(values_[0]), high = real(values_[1]);
      return clamped(low + random.unit() * (high - low), low, high);
    }
    case Kind::LogUniform:
    case Kind::LogInteger: {
      if (const auto places = places_of(*this))
        return at_step(places->number_at(random.unit(), random));
      const double low = std::log(real(values_[0])), high = std::log(real(values_[1]));
      return nearest(std::exp(low + random.unit() * (high - low)));
    }
    case Kind::Normal: {  // Box and Muller, 1958
      const double length = std::sqrt(-2 * std::log(1 - random.unit()));
      const double angle = 2 * std::numbers::pi * random.unit();
      return nearest(real(values_[0]) + real(values_[1]) * length * std::cos(angle));
    }
    case Kind::Integer:
      break;
  }
  const auto last = *last_step();
  return at_step(last == UINT64_MAX ? random.next() : random.below(last + 1));
}

bool Domain::contains(const Scalar& value) const {
  if (is_whole()) {
    const auto* at = std::get_if<std::int64_t>(&value.value());
    if (!at || *at < whole(values_[0]) || *at > whole(values_[1])) return false;
    const auto distance =
        static_cast<std::uint64_t>(*at) - static_cast<std::uint64_t>(whole(values_[0]));
    return values_.size() < 3 || distance % static_cast<std::uint64_t>(whole(values_[2])) == 0;
  }
  if (const auto all = range()) {
    const auto* at = std::get_if<double>(&value.value());
    if (!at || !std::isfinite(*at)) return false;
    if (all->step > 0) return nearest(*at) == value;
    return all->low <= *at && (*at < all->high || all->low == all->high);
  }
  return std::ranges::find(values_, value) != values_.end();
}

std::optional<Range> Domain::range() const {
  switch (kind_) {
    case Kind::Integer:
    case Kind::LogInteger:
      return Range{.low = static_cast<double>(whole(values_[0])),
                   .high = static_cast<double>(whole(at_step(*last_step()))),
                   .is_log = kind_ == Kind::LogInteger,
                   .step = values_.size() < 3 ? 1 : step()};
    case Kind::Uniform:
    case Kind::LogUniform:
      return Range{.low = real(values_[0]),
                   .high = step() > 0 ? real(at_step(*last_step())) : real(values_[1]),
                   .is_log = kind_ == Kind::LogUniform,
                   .step = step()};
    case Kind::Normal:
      return Range{.low = -kEndless,
                   .high = kEndless,
                   .step = step(),
                   .mean = real(values_[0]),
                   .deviation = real(values_[1])};
    default:
      return std::nullopt;
  }
}

Scalar Domain::nearest(double x) const {
  assert(range());
  if (is_whole()) return nearest_integer(x);
  if (kind_ == Kind::Normal) {
    const auto most = std::numeric_limits<double>::max();
    if (step() == 0) return std::clamp(x, -most, most);
    const double steps = std::round(x / step());
    // Beyond, a double has no digit left that a step would change.
    if (!(std::abs(steps) < kMostSteps)) return without_negative_zero(x);
    const auto value = written_sum(0, static_cast<std::int64_t>(steps), step());
    return value ? Scalar(*value) : without_negative_zero(steps * step());
  }
  const double low = real(values_[0]), high = real(values_[1]);
  if (step() == 0) return clamped(x, low, high);
  if (x <= low) return at_step(0);
  return at_step(x >= high ? *last_step() : steps_near(x));
}

Scalar Domain::nearest_integer(double x) const {
  const auto low = whole(values_[0]), high = whole(values_[1]);
  // Compared as real numbers first: one beyond 2^63 has no integer.
  if (x <= static_cast<double>(low)) return at_step(0);
  if (x >= static_cast<double>(high)) return at_step(*last_step());
  if (values_.size() < 3) return std::clamp(static_cast<std::int64_t>(std::llround(x)), low, high);
  const auto each = static_cast<std::uint64_t>(whole(values_[2]));
  const double below = std::floor(x);
  const auto distance = static_cast<std::uint64_t>(static_cast<std::int64_t>(below)) -
                        static_cast<std::uint64_t>(low);
  const double rest = static_cast<double>(distance % each) + (x - below);
  const auto steps = distance / each + (rest >= static_cast<double>(each) / 2 ? 1 : 0);
  return at_step(std::min(steps, *last_step()));
}

Scalar Domain::nearest_to(const Scalar& number) const {
  if (const auto* x = std::get_if<double>(&number.value())) return nearest(*x);
  const auto integer = whole(number);
  if (!is_whole()) return nearest(static_cast<double>(integer));
  if (integer <= whole(values_[0])) return at_step(0);
  if (integer >= whole(values_[1])) return at_step(*last_step());
  const auto each = values_.size() < 3 ? 1 : static_cast<std::uint64_t>(whole(values_[2]));
  const auto distance =
      static_cast<std::uint64_t>(integer) - static_cast<std::uint64_t>(whole(values_[0]));
  const auto steps = distance / each + (distance % each >= each - each / 2 ? 1 : 0);
  return at_step(std::min(steps, *last_step()));
}

Domain uniform(double low, double high) { return {Domain::Kind::Uniform, {low, high}}; }
Domain uniform(double low, double high, double step) {
  return {Domain::Kind::Uniform, {low, high, step}};
}
Domain loguniform(double low, double high) { return {Domain::Kind::LogUniform, {low, high}}; }
Domain loguniform(double low, double high, double step) {
  return {Domain::Kind::LogUniform, {low, high, step}};
}
Domain integer(std::int64_t low, std::int64_t high) { return {Domain::Kind::Integer, {low, high}}; }
Domain integer(std::int64_t low, std::int64_t high, std::int64_t step) {
  return {Domain::Kind::Integer, {low, high, step}};
}
Domain log_integer(std::int64_t low, std::int64_t high) {
  return {Domain::Kind::LogInteger, {low, high}};
}
Domain normal(double mean, double deviation) { return {Domain::Kind::Normal, {mean, deviation}}; }
Domain normal(double mean, double deviation, double step) {
  return {Domain::Kind::Normal, {mean, deviation, step}};
}
Domain ordinal(std::vector<Scalar> values) { return {Domain::Kind::Ordinal, std::move(values)}; }
Domain choice(std::vector<Scalar> values) { return {Domain::Kind::Choice, std::move(values)}; }
Domain grid(std::vector<Scalar> values) { return {Domain::Kind::Grid, std::move(values)}; }

std::string to_string(const Domain& domain) {
  constexpr std::string_view names[] = {"",     "uniform",     "loguniform", "integer", "choice",
                                        "grid", "log_integer", "normal",     "ordinal"};
  if (domain.kind() == Domain::Kind::Constant) return to_string(domain.values().front());
  std::string values;
  for (const auto& value : domain.values())
    values += (values.empty() ? "" : ", ") + to_string(value);
  return fmt::format("{}({})", names[static_cast<std::size_t>(domain.kind())], values);
}

}  // namespace troupe::tune
