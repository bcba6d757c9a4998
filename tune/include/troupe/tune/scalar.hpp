#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::tune {

namespace detail {
/// These two as std::in_range, which refuses the types of characters. Whether an integer fits 64
/// bits with a sign;
template <std::integral Integer>
constexpr bool fits_64_bits(Integer whole) {
  if constexpr (std::is_signed_v<Integer> || sizeof(Integer) < sizeof(std::int64_t)) return true;
  return static_cast<std::uint64_t>(whole) <= std::numeric_limits<std::int64_t>::max();
}
/// and whether such a one fits that type.
template <std::integral Integer>
constexpr bool fits(std::int64_t whole) {
  constexpr auto high = std::numeric_limits<Integer>::max();
  if constexpr (!fits_64_bits(high)) return whole >= 0;
  return whole >= static_cast<std::int64_t>(std::numeric_limits<Integer>::min()) &&
         whole <= static_cast<std::int64_t>(high);
}
}  // namespace detail

/// One value of a configuration: a real number, an integer, a truth value or text. A value type;
/// the kind is kept, so that the integer 1 and the real number 1.0 differ.
class Scalar {
 public:
  using Value = std::variant<double, std::int64_t, bool, std::string>;

  template <std::floating_point Number>
  Scalar(Number number) : value_{static_cast<double>(number)} {}
  /// Throws std::invalid_argument for an unsigned number that does not fit 64 bits with a sign.
  template <std::integral Number>
  Scalar(Number number) : value_{std::int64_t{0}} {
    if constexpr (std::same_as<Number, bool>) {
      value_ = number;
    } else {
      if (!detail::fits_64_bits(number)) refuse_too_large();
      value_ = static_cast<std::int64_t>(number);
    }
  }
  Scalar(std::string text) : value_{std::move(text)} {}
  Scalar(std::string_view text) : value_{std::string(text)} {}
  Scalar(const char* text) : value_{std::string(text)} {}
  /// The compiler's message for what is no value in C++.
  template <std::same_as<std::nullptr_t> Null>
  Scalar(Null) {
    static_assert(!std::same_as<Null, std::nullptr_t>,
                  "troupe: nullptr is no value of a field: a field that may have none is a "
                  "std::optional, and "
                  "tune::choice<std::optional<double>>({std::nullopt, 0.5}) has both");
  }

  const Value& value() const { return value_; }
  friend bool operator==(const Scalar&, const Scalar&) = default;

 private:
  [[noreturn]] static void refuse_too_large();

  Value value_;
};

/// "real number", "integer", "truth value" or "text".
std::string_view kind_of(const Scalar& scalar);

/// As short as it can be and still read back as the same value: "0.1", "true", "adam".
std::string to_string(const Scalar& scalar);
/// The same for a number; what is not finite is "nan", "inf" or "-inf".
std::string to_string(double number);

namespace detail {
/// Whether a real number of this kind is that integer, to its last digit.
template <std::floating_point Real>
bool holds_integer(std::int64_t whole) {
  constexpr auto end = static_cast<Real>(9223372036854775808.0);  // 2^63, which no integer is
  const auto real = static_cast<Real>(whole);
  return real < end && static_cast<std::int64_t>(real) == whole;
}
}  // namespace detail

/// What one trial runs with: the searched fields by name, in the order of the search space.
using Configuration = std::vector<std::pair<std::string, Scalar>>;

/// "lr=0.031, batch=64".
std::string to_string(const Configuration& configuration);

}  // namespace troupe::tune
