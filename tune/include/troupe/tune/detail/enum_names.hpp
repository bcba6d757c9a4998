#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <troupe/tune/scalar.hpp>

/// The names of an enum's enumerators, for which C++20 has no function: g++ and clang print a
/// template argument that is an enumerator as "Activation::Relu", and any other value of the enum as
/// "(Activation)7".
namespace troupe::tune::detail {

/// Enumerators with other values have no name here.
inline constexpr int kLowestNamed = -128, kHighestNamed = 127;

template <class Enum>
constexpr bool is_in_range(std::int64_t value) {
  using Number = std::underlying_type_t<Enum>;
  if constexpr (std::is_same_v<Number, bool>)
    return value == 0 || value == 1;
  else
    return fits<Number>(value);
}

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wenum-constexpr-conversion"
#endif

/// Of an enum without an underlying type of its own, clang takes some values alone.
template <class Enum, int value, class = void>
inline constexpr bool kHasValue = false;
template <class Enum, int value>
inline constexpr bool
    kHasValue<Enum, value, std::void_t<std::integral_constant<Enum, static_cast<Enum>(value)>>> =
        is_in_range<Enum>(value);

/// An int, which has no name, where the enum has no such value.
template <class Enum, int value>
constexpr auto enumerator_or_number() {
  if constexpr (kHasValue<Enum, value>)
    return static_cast<Enum>(value);
  else
    return value;
}

/// The return type is deduced, as of printed_address().
template <auto... values>
constexpr auto printed_values() {
  return std::string_view{__PRETTY_FUNCTION__};
}

/// The enumerator's name in a printed value. Empty: the value is no enumerator, and ends with a number.
consteval std::string_view name_in(std::string_view printed) {
  const auto word = printed.substr(printed.find_last_of(":) ") + 1);
  const bool is_number = word.empty() || word[0] == '-' || (word[0] >= '0' && word[0] <= '9');
  return is_number ? std::string_view{} : word;
}

/// Of each value from kLowestNamed to kHighestNamed; empty: there is no enumerator.
template <class Enum>
consteval auto named_values() {
  constexpr std::size_t count = kHighestNamed - kLowestNamed + 1;
  constexpr auto printed = []<std::size_t... i>(std::index_sequence<i...>) {
    return printed_values<enumerator_or_number<Enum, kLowestNamed + static_cast<int>(i)>()...>();
  }
  (std::make_index_sequence<count>{});
  // "... [with auto ...values = {(E)-128, E::a, E::b}]" of g++, "[values = <(E)-128, E::a>]" of clang. A name may
  // have commas, in the arguments of a template that holds the enum.
  std::array<std::string_view, count> names{};
  auto rest = printed.substr(printed.rfind(" = ") + 4);
  for (auto& name : names) {
    std::size_t end = 0;
    for (int open = 0; end < rest.size(); ++end) {
      const char c = rest[end];
      if (open == 0 && (c == ',' || c == '}' || c == '>' || c == ']')) break;
      if (c == '<' || c == '(' || c == '{') ++open;
      if (c == '>' || c == ')' || c == '}') --open;
    }
    name = name_in(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

template <class Enum>
inline constexpr auto kEnumeratorNames = named_values<Enum>();

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/// Empty: the value has no name. Of two enumerators with one value, the first one's.
template <class Enum>
constexpr std::string_view enumerator_name(Enum value) {
  const auto number = static_cast<std::underlying_type_t<Enum>>(value);
  if (!fits_64_bits(number)) return {};
  const auto whole = static_cast<std::int64_t>(number);
  if (whole < kLowestNamed || whole > kHighestNamed) return {};
  return kEnumeratorNames<Enum>[static_cast<std::size_t>(whole - kLowestNamed)];
}

template <class Enum>
constexpr std::optional<Enum> enumerator_of(std::string_view name) {
  const auto& names = kEnumeratorNames<Enum>;
  const auto at = std::ranges::find(names, name);
  if (name.empty() || at == names.end()) return std::nullopt;
  return static_cast<Enum>(static_cast<int>(at - names.begin()) + kLowestNamed);
}

/// A number for which std::from_chars has an overload.
template <class Enum>
using EnumNumber =
    std::conditional_t<std::is_same_v<std::underlying_type_t<Enum>, bool>, std::uint8_t,
                       std::conditional_t<std::is_unsigned_v<std::underlying_type_t<Enum>>,
                                          std::uint64_t, std::int64_t>>;

/// Whether the enum has this value, named or not. Of one without an underlying type of its own, only those values
/// are known to be its own that lie between its enumerators.
template <class Enum>
constexpr bool has_value(EnumNumber<Enum> number) {
  if constexpr (requires { Enum{0}; }) {
    using Number = std::underlying_type_t<Enum>;
    if constexpr (std::is_same_v<Number, bool>)
      return number <= 1;
    else
      return static_cast<EnumNumber<Enum>>(static_cast<Number>(number)) == number;
  } else {
    std::optional<std::size_t> first, last;
    const auto& names = kEnumeratorNames<Enum>;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      if (!first) first = i;
      last = i;
    }
    if (!first || number > static_cast<EnumNumber<Enum>>(kHighestNamed)) return false;
    const auto whole = static_cast<std::int64_t>(number);
    return whole >= kLowestNamed + static_cast<int>(*first) &&
           whole <= kLowestNamed + static_cast<int>(*last);
  }
}

}  // namespace troupe::tune::detail
