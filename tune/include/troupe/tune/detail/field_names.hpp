#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <boost/pfr/core.hpp>
#include <boost/pfr/tuple_size.hpp>

/// The names of an aggregate's fields, which C++20 has no way to ask for: g++ and clang print them
/// in __PRETTY_FUNCTION__ of a function whose template argument holds the address of the field.
namespace troupe::tune::detail {

template <class Aggregate>
struct Elsewhere {
  Aggregate value;
};

/// Before version 18, clang takes the address of a field as a template argument only inside a class.
template <class Pointer>
struct FieldAddress {
  Pointer pointer;
};

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif

/// Never defined: only addresses inside it are named.
template <class Aggregate>
extern const Elsewhere<Aggregate> elsewhere;

template <class Aggregate, std::size_t index>
constexpr auto field_address() {
  const auto pointer = &boost::pfr::get<index>(elsewhere<Aggregate>.value);
  return FieldAddress<decltype(pointer)>{pointer};
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/// The return type is deduced, or g++ would add "; std::string_view = ..." behind the address.
template <auto address>
constexpr auto printed_address() {
  return std::string_view{__PRETTY_FUNCTION__};
}

/// The last name that is printed: g++ ends with "::S::rate)}]", clang with ".value.rate}]".
template <auto address>
consteval std::string_view field_name() {
  auto text = printed_address<address>();
  auto in_name = [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return is_letter || (c >= '0' && c <= '9') || (c & 0x80) != 0;  // and those beyond ASCII
  };
  while (!text.empty() && !in_name(text.back())) text.remove_suffix(1);
  auto begin = text.size();
  while (begin > 0 && in_name(text[begin - 1])) --begin;
  return text.substr(begin);
}

template <class Aggregate>
consteval auto field_names() {
  return []<std::size_t... index>(std::index_sequence<index...>) {
    return std::array<std::string_view, sizeof...(index)>{
        field_name<field_address<Aggregate, index>()>()...};
  }
  (std::make_index_sequence<boost::pfr::tuple_size_v<Aggregate>>{});
}

}  // namespace troupe::tune::detail
