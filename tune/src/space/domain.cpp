#include <troupe/tune/domain.hpp>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include <fmt/format.h>

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

/// To fifteen digits: three steps of 0.1 are 0.3, as people write it.
double rounded(double x) {
  const auto text = fmt::format("{:.15g}", x);
  std::from_chars(text.data(), text.data() + text.size(), x);
  return x;
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
  for (std::size_t i = 1; kind == Kind::Ordinal && i < values_.size(); ++i) {
    if (std::find(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(i), values_[i]) !=
        values_.begin() + static_cast<std::ptrdiff_t>(i))
      refuse(*this, "a value stands in it twice");
  }
}

void Domain::check_bounds() const {
  const bool is_real = kind_ == Kind::Uniform || kind_ == Kind::LogUniform;
  const bool is_whole = kind_ == Kind::Integer || kind_ == Kind::LogInteger;
  if (kind_ == Kind::Normal && real(values_[1]) <= 0)
    refuse(*this, "the deviation has to be above 0");
  if ((is_real && real(values_[0]) > real(values_[1])) ||
      (is_whole && whole(values_[0]) > whole(values_[1])))
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
  if (kind_ != Kind::Integer && kind_ != Kind::Normal &&
      (real(values_[1]) - real(values_[0])) / real(values_[2]) > kMostSteps)
    refuse(*this, "there are more steps than a double can count");
}

// ---- domains with a step ------------------------------------------------------------------------

/// 0: there is none.
double Domain::step() const { return values_.size() < 3 ? 0 : number(values_[2]); }

/// The number of steps from the lower bound to the last value.
std::uint64_t Domain::last_step() const {
  if (kind_ == Kind::Integer || kind_ == Kind::LogInteger) {
    const auto low = static_cast<std::uint64_t>(whole(values_[0]));
    const auto span = static_cast<std::uint64_t>(whole(values_[1])) - low;
    return values_.size() < 3 ? span : span / static_cast<std::uint64_t>(whole(values_[2]));
  }
  // What is short of a whole number of steps by rounding counts as whole.
  return static_cast<std::uint64_t>((real(values_[1]) - real(values_[0])) / step() + 1e-9);
}

Scalar Domain::at_step(std::uint64_t steps) const {
  if (kind_ == Kind::Integer || kind_ == Kind::LogInteger) {
    const auto each = values_.size() < 3 ? 1 : static_cast<std::uint64_t>(whole(values_[2]));
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(whole(values_[0])) + steps * each);
  }
  return rounded(real(values_[0]) + static_cast<double>(steps) * step());
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
      if (step() > 0) return at_step(random.below(last_step() + 1));
      const double low = real(values_[0]), high = real(values_[1]);
      return clamped(low + random.unit() * (high - low), low, high);
    }
    case Kind::LogUniform:
    case Kind::LogInteger: {
      const auto all = *range();
      const double low = std::log(all.low - all.step / 2);
      const double high = std::log(all.high + all.step / 2);
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
  const auto last = last_step();
  return at_step(last == UINT64_MAX ? random.next() : random.below(last + 1));
}

bool Domain::contains(const Scalar& value) const {
  if (kind_ == Kind::Integer || kind_ == Kind::LogInteger) {
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
                   .high = static_cast<double>(whole(at_step(last_step()))),
                   .is_log = kind_ == Kind::LogInteger,
                   .step = values_.size() < 3 ? 1 : step()};
    case Kind::Uniform:
    case Kind::LogUniform:
      return Range{.low = real(values_[0]),
                   .high = step() > 0 ? real(at_step(last_step())) : real(values_[1]),
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
  if (kind_ == Kind::Normal) {
    const auto most = std::numeric_limits<double>::max();
    if (step() == 0) return std::clamp(x, -most, most);
    return rounded(std::round(x / step()) * step());
  }
  const auto all = *range();
  if (all.step == 0) return clamped(x, all.low, all.high);
  // Compared as real numbers first: one beyond 2^63 has no integer.
  if (x <= all.low) return at_step(0);
  if (x >= all.high) return at_step(last_step());
  // Not by the distance from the lower bound, which may be beyond what a double holds exactly.
  if (kind_ != Kind::Uniform && kind_ != Kind::LogUniform && all.step == 1)
    return std::clamp(static_cast<std::int64_t>(std::llround(x)), whole(values_[0]),
                      whole(values_[1]));
  const auto steps = static_cast<std::uint64_t>(std::llround((x - all.low) / all.step));
  return at_step(std::min(steps, last_step()));
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
