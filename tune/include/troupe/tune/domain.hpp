#pragma once

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <troupe/tune/detail/written.hpp>
#include <troupe/tune/random.hpp>
#include <troupe/tune/scalar.hpp>

namespace troupe::tune {

/// The range of a numeric domain, and how its values are distributed. Doubles, so that a bound beyond 2^53 may be the
/// nearest one that there is: Domain::last_step and Domain::at_step are exact.
struct Range {
  double low = 0;
  double high = 0;      ///< not part of it, but where low == high; with a step, part of it
  bool is_log = false;  ///< the logarithms are equally likely
  double step = 0;      ///< between neighbours; 0: every real number
  double mean = 0;  ///< of a normal distribution, which has no bounds: low and high are infinite
  double deviation = 0;  ///< of a normal distribution; 0: it is none
  friend bool operator==(const Range&, const Range&) = default;
};

/// The values that one field of a configuration may take. A value type; made by the functions
/// below, or implicitly from a constant. All of them throw std::invalid_argument, naming the
/// values, for a domain that is empty or not finite.
class Domain {
 public:
  enum class Kind : std::uint8_t {
    Constant,
    Uniform,
    LogUniform,
    Integer,
    Choice,
    Grid,
    LogInteger,
    Normal,
    Ordinal
  };

  template <detail::Searchable Constant>
  Domain(Constant constant) : Domain{Kind::Constant, {detail::as_scalar(constant)}} {}

  Kind kind() const { return kind_; }
  /// The values themselves of a constant, a choice, an ordinal or a grid; the lower and the upper
  /// bound of a range, the mean and the deviation of a normal distribution, then the step, if any.
  const std::vector<Scalar>& values() const { return values_; }
  /// Draws one value. A grid draws like a choice.
  Scalar sample(Random& random) const;
  /// True for every value that sample can return.
  bool contains(const Scalar& value) const;
  /// None for a constant, a choice, an ordinal and a grid, whose values() are all there are.
  std::optional<Range> range() const;
  /// For a range: the value in it that is nearest to a finite x.
  Scalar nearest(double x) const;
  /// The same for a real number or an integer: exact also where no double holds the integer.
  Scalar nearest_to(const Scalar& number) const;

  /// Of a range that has steps and a lower bound, as all of integers have: how many steps its last value is above its
  /// first one. None for any other domain.
  std::optional<std::uint64_t> last_step() const;
  /// The value that is so many steps above the first one: that integer, or the real number that is written so (three
  /// steps of 0.1 from -0.3 are 0, and not 5.6e-17). They are at most last_step().
  Scalar at_step(std::uint64_t steps) const;
  /// How many steps a value is above the first one. Asserts contains(value).
  std::uint64_t steps_to(const Scalar& value) const;

  friend bool operator==(const Domain&, const Domain&) = default;

 private:
  friend Domain uniform(double low, double high);
  friend Domain uniform(double low, double high, double step);
  friend Domain loguniform(double low, double high);
  friend Domain loguniform(double low, double high, double step);
  friend Domain integer(std::int64_t low, std::int64_t high);
  friend Domain integer(std::int64_t low, std::int64_t high, std::int64_t step);
  friend Domain log_integer(std::int64_t low, std::int64_t high);
  friend Domain normal(double mean, double deviation);
  friend Domain normal(double mean, double deviation, double step);
  friend Domain ordinal(std::vector<Scalar> values);
  friend Domain choice(std::vector<Scalar> values);
  friend Domain grid(std::vector<Scalar> values);

  Domain(Kind kind, std::vector<Scalar> values);
  void check_bounds() const;
  void check_step() const;
  bool is_whole() const;
  double step() const;
  Scalar nearest_integer(double x) const;
  std::uint64_t steps_near(double x) const;

  Kind kind_;
  std::vector<Scalar> values_;
};

/// Real numbers in [low, high), each equally likely.
Domain uniform(double low, double high);
/// low, low + step, ..., up to high, which is included if the steps reach it: as these numbers are written, so that 0 is
/// among -0.3, -0.2, ..., 0.3. 0 < step, which a double has to tell from 0 beside the bounds.
Domain uniform(double low, double high, double step);
/// Real numbers in [low, high), their logarithms equally likely. 0 < low.
Domain loguniform(double low, double high);
/// low, low + step, ..., up to high: each as likely as the logarithms that round to it are.
/// 0 < step <= low.
Domain loguniform(double low, double high, double step);
/// Integers from low to high, both included.
Domain integer(std::int64_t low, std::int64_t high);
/// low, low + step, ..., up to high. 0 < step.
Domain integer(std::int64_t low, std::int64_t high, std::int64_t step);
/// Integers from low to high, both included: each as likely as the logarithms that round to it are.
/// 0 < low.
Domain log_integer(std::int64_t low, std::int64_t high);
/// Bounds and steps of these must be integers.
template <class... Bounds>
requires(std::floating_point<std::remove_cvref_t<Bounds>> || ...) Domain integer(Bounds...) {
  static_assert(sizeof...(Bounds) == 0,
                "troupe: the bounds and the step of tune::integer are integers: write 3, not 3.0; "
                "of real numbers tune::uniform(low, high, step) is a domain with steps");
  return integer(0, 0);
}
template <class... Bounds>
requires(std::floating_point<std::remove_cvref_t<Bounds>> || ...) Domain log_integer(Bounds...) {
  static_assert(sizeof...(Bounds) == 0,
                "troupe: the bounds of tune::log_integer are integers: write 64, not 64.0 or 1e3");
  return log_integer(1, 1);
}
/// Real numbers, distributed normally. 0 < deviation.
Domain normal(double mean, double deviation);
/// The same, rounded to a multiple of step, as that is written. 0 < step.
Domain normal(double mean, double deviation, double step);
/// One of the values, each equally likely.
Domain choice(std::vector<Scalar> values);
/// One of the values, each equally likely, which have an order: a learning searcher treats
/// neighbours as similar.
Domain ordinal(std::vector<Scalar> values);
/// Every one of the values in turn; several grids make their cartesian product (GridSearcher).
Domain grid(std::vector<Scalar> values);

namespace detail {
template <class Values>
std::vector<Scalar> as_scalars(const Values& values) {
  using Value = std::ranges::range_value_t<Values>;
  static_assert(
      Searchable<Value>,
      "troupe: a value of a choice, an ordinal or a grid is a number, a truth value, text, "
      "an enumerator, or a std::vector, std::array, std::optional or plain struct of these; no "
      "optional of an optional, or of an enum with an "
      "enumerator none");
  std::vector<Scalar> scalars;
  if constexpr (Searchable<Value>) {
    for (const Value& value : values) scalars.push_back(as_scalar(value));
  }
  return scalars;
}

/// Of values of one type, which are not written down one by one.
template <class Values>
concept ValueRange =
    std::ranges::input_range<const Values> && !std::same_as<Values, std::vector<Scalar>> &&
    !std::convertible_to<const Values&, std::string_view>;

/// Of a list that is written in braces.
template <class Part>
concept InBraces = std::convertible_to<Part, std::string_view> || !std::ranges::range<Part>;

/// Text in braces is a std::string.
template <class Part>
auto as_vectors(std::initializer_list<std::initializer_list<Part>> values) {
  constexpr bool is_text = std::is_convertible_v<Part, std::string_view>;
  using Vector = std::vector<std::conditional_t<is_text, std::string, Part>>;
  std::vector<Vector> vectors;
  for (const auto& parts : values) vectors.emplace_back(parts.begin(), parts.end());
  return vectors;
}

/// Any value, or braces around any: only overloads that refuse with a message of their own take it.
struct Anything {
  template <class Value>
  Anything(const Value&) {}
  Anything(std::initializer_list<Anything>) {}
};

struct Braces {
  Braces(std::initializer_list<Anything>) {}
};

/// The compiler's message; `is_used` is true.
template <bool is_used>
Domain refuse_values_of_no_type() {
  static_assert(!is_used,
                "troupe: the values in these braces are of no one type: name it, as in "
                "tune::choice<Layer>({{64, 0.1}, {128, 0.2}}) or "
                "tune::choice<std::optional<double>>({std::nullopt, 0.5}); braces around a single "
                "value can be left away");
  std::abort();
}
}  // namespace detail

/// The three above for values of one type: numbers, truth values, text, enumerators, and
/// std::vector, std::array, std::optional and plain structs of these. What is no number, truth value
/// or text is searched, kept in files and shown as the text that it is written as: Relu, [64, 32],
/// {lr: 0.1, name: "adam"}; an optional without a value as none. An enumerator whose value is below
/// -128 or above 127 is written as its number. Braces in braces are lists, choice({{64}, {128, 64}}), where all
/// their parts are of one type that is no list; else name it, as in choice<Layer>({{64, 0.1}, {128, 0.2}}).
template <detail::ValueRange Values>
Domain choice(const Values& values) {
  return choice(detail::as_scalars(values));
}
template <detail::ValueRange Values>
Domain ordinal(const Values& values) {
  return ordinal(detail::as_scalars(values));
}
template <detail::ValueRange Values>
Domain grid(const Values& values) {
  return grid(detail::as_scalars(values));
}
template <class Value>
Domain choice(std::initializer_list<Value> values) {
  return choice(detail::as_scalars(values));
}
template <class Value>
Domain ordinal(std::initializer_list<Value> values) {
  return ordinal(detail::as_scalars(values));
}
template <class Value>
Domain grid(std::initializer_list<Value> values) {
  return grid(detail::as_scalars(values));
}
/// Lists: choice({{64}, {128, 64}}). A type that is named, as in choice<Layer>(...), is that of the
/// values, and never that of the parts of a list.
template <int = 0, detail::InBraces Part>
Domain choice(std::initializer_list<std::initializer_list<Part>> values) {
  return choice(detail::as_vectors(values));
}
template <int = 0, detail::InBraces Part>
Domain ordinal(std::initializer_list<std::initializer_list<Part>> values) {
  return ordinal(detail::as_vectors(values));
}
template <int = 0, detail::InBraces Part>
Domain grid(std::initializer_list<std::initializer_list<Part>> values) {
  return grid(detail::as_vectors(values));
}
/// Of braces that no other overload takes: each of these is better.
template <bool is_used = true>
Domain choice(const detail::Braces&) {
  return detail::refuse_values_of_no_type<is_used>();
}
template <bool is_used = true>
Domain ordinal(const detail::Braces&) {
  return detail::refuse_values_of_no_type<is_used>();
}
template <bool is_used = true>
Domain grid(const detail::Braces&) {
  return detail::refuse_values_of_no_type<is_used>();
}
/// The compiler's message for values without braces.
template <class... Values>
requires(sizeof...(Values) > 1) Domain choice(const Values&...) {
  static_assert(sizeof...(Values) == 0,
                "troupe: the values stand in braces: tune::choice({1, 2, 3})");
  std::abort();
}
template <class... Values>
requires(sizeof...(Values) > 1) Domain ordinal(const Values&...) {
  static_assert(sizeof...(Values) == 0,
                "troupe: the values stand in braces: tune::ordinal({1, 2, 3})");
  std::abort();
}
template <class... Values>
requires(sizeof...(Values) > 1) Domain grid(const Values&...) {
  static_assert(sizeof...(Values) == 0,
                "troupe: the values stand in braces: tune::grid({1, 2, 3})");
  std::abort();
}

/// "loguniform(0.001, 1)", "uniform(0, 1, 0.25)", "choice(32, 64)".
std::string to_string(const Domain& domain);

}  // namespace troupe::tune
