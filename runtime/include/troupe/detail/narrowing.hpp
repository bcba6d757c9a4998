#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include <troupe/detail/core.hpp>
#include <troupe/detail/names.hpp>

/// The compiler warns of `nap(5'000'000'000L)` for an `int`, and cannot where a template stands in
/// between: that argument is looked at when it is packed.
namespace troupe::detail {

using AnyNumber = std::variant<long long, unsigned long long, double>;

/// Throws std::invalid_argument: argument `place` (from 0) of the call is no `type`.
[[noreturn]] void refuse_number(const FunctionKey& function, std::size_t place, AnyNumber number,
                                std::string_view type);

template <class T>
struct NumberIn {
  using type = T;
};
template <class T>
requires(std::is_enum_v<T>&& std::is_convertible_v<T, long long>) struct NumberIn<T> {
  using type = std::underlying_type_t<T>;
};
template <class T>
struct NumberIn<std::optional<T>> : NumberIn<T> {};
/// The number that a T is, or may have: of an enumeration that converts to one, of a std::optional.
template <class T>
using NumberOf = typename NumberIn<T>::type;

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Whether `To` may not have each number of `From`. Bytes are not looked at: which of their types has a
/// sign is of no importance to who passes a character.
template <class To, class From>
inline constexpr bool may_not_hold =
    is_number<To>&& is_number<From> &&
    !(std::is_integral_v<To> && std::is_integral_v<From> && sizeof(To) == 1 && sizeof(From) == 1);

/// Whether a `To` can be `number`: a floating-point number rounds what it gets; a number that
/// becomes infinite it cannot be.
template <class To, class From>
bool holds(From number) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    const auto there = static_cast<To>(number);
    return static_cast<From>(there) == number && (there < To{}) == (number < From{});
  } else if constexpr (std::is_integral_v<To>) {
    const auto end = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    return number < end && number >= (std::is_signed_v<To> ? -end : From{}) &&
           std::trunc(number) == number;
  } else if constexpr (std::is_floating_point_v<From>) {
    return std::isinf(static_cast<To>(number)) == std::isinf(number);
  } else {
    return true;
  }
}

template <class To, class From>
void require_held(const FunctionKey& function, std::size_t place, From number) {
  if (holds<To>(number)) return;
  if constexpr (std::is_floating_point_v<From>) {
    refuse_number(function, place, static_cast<double>(number), type_name<To>);
  } else if constexpr (std::is_signed_v<From>) {
    refuse_number(function, place, static_cast<long long>(number), type_name<To>);
  } else {
    refuse_number(function, place, static_cast<unsigned long long>(number), type_name<To>);
  }
}

}  // namespace troupe::detail
