#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <boost/pfr/core.hpp>
#include <boost/pfr/tuple_size.hpp>

/// The names of an aggregate's fields, which C++20 has no way to ask for: g++ prints them in
/// __PRETTY_FUNCTION__ of a function whose template argument is the address of the field.
namespace troupe::tune::detail {

template <class Aggregate>
struct Elsewhere {
  Aggregate value;
};
/// Never defined: only addresses inside it are named.
template <class Aggregate>
extern const Elsewhere<Aggregate> elsewhere;

template <class Aggregate, std::size_t index>
constexpr auto field_address() {
  return &boost::pfr::get<index>(elsewhere<Aggregate>.value);
}

/// The return type is deduced, or g++ would add "; std::string_view = ..." behind the address.
template <auto address>
constexpr auto printed_address() {
  return std::string_view{__PRETTY_FUNCTION__};
}

template <auto address>
consteval std::string_view field_name() {
  auto text = printed_address<address>();
  text.remove_prefix(text.rfind("::") + 2);
  auto in_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::size_t length = 0;
  while (length < text.size() && in_name(text[length])) ++length;
  return text.substr(0, length);
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
