#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <troupe/detail/aggregate.hpp>
#include <troupe/detail/fields.hpp>

/// The names of an aggregate's fields, which C++20 has no way to ask for: g++ and clang print them
/// in __PRETTY_FUNCTION__ of a function whose template argument holds the address of the field. The
/// fields of a struct in it count as fields of it: "optimizer.lr".
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
  const auto pointer = &troupe::detail::field_at<index>(elsewhere<Aggregate>.value);
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

/// True for a struct whose fields are fields of the one that holds it.
template <class Field>
constexpr bool is_nested() {
  namespace runtime = troupe::detail;
  if constexpr (!runtime::Plain<Field> || std::is_empty_v<Field> ||
                runtime::is_std_array<Field>::value) {
    return false;
  } else if constexpr (runtime::has_base<Field>) {
    return false;
  } else {
    return !runtime::has_c_array<Field>();
  }
}

template <class Aggregate>
using FieldIndices = troupe::detail::IndicesOfFields<Aggregate>;

template <class Aggregate>
constexpr std::size_t field_count() {
  const auto of = []<class Field>(std::type_identity<Field>) -> std::size_t {
    if constexpr (is_nested<Field>()) return field_count<Field>();
    return 1;
  };
  return [&]<std::size_t... index>(std::index_sequence<index...>) {
    return (of(std::type_identity<troupe::detail::FieldAt<index, Aggregate>>{}) + ... + 0);
  }
  (FieldIndices<Aggregate>{});
}

/// Where a field is: in which member, and the how manieth in that.
struct FieldPlace {
  std::size_t member = 0;
  std::size_t inner = 0;
};

template <class Aggregate>
consteval FieldPlace place_of(std::size_t field) {
  const auto counts = []<std::size_t... index>(std::index_sequence<index...>) {
    const auto of = []<class Field>(std::type_identity<Field>) -> std::size_t {
      if constexpr (is_nested<Field>()) return field_count<Field>();
      return 1;
    };
    return std::array<std::size_t, sizeof...(index)>{
        of(std::type_identity<troupe::detail::FieldAt<index, Aggregate>>{})...};
  }
  (FieldIndices<Aggregate>{});
  FieldPlace place{0, field};
  while (place.inner >= counts[place.member]) place.inner -= counts[place.member++];
  return place;
}

/// The name of one field, which lives as long as the program.
template <class Aggregate, std::size_t field>
struct NameOf {
  static constexpr auto place = place_of<Aggregate>(field);
  using Member = troupe::detail::FieldAt<place.member, Aggregate>;
  static constexpr auto text = [] {
    constexpr auto outer = field_name<field_address<Aggregate, place.member>()>();
    if constexpr (is_nested<Member>()) {
      constexpr auto inner = NameOf<Member, place.inner>::value();
      std::array<char, outer.size() + 1 + inner.size()> joined{};
      for (std::size_t i = 0; i < outer.size(); ++i) joined[i] = outer[i];
      joined[outer.size()] = '.';
      for (std::size_t i = 0; i < inner.size(); ++i) joined[outer.size() + 1 + i] = inner[i];
      return joined;
    } else {
      std::array<char, outer.size()> copied{};
      for (std::size_t i = 0; i < outer.size(); ++i) copied[i] = outer[i];
      return copied;
    }
  }();
  static constexpr std::string_view value() { return {text.data(), text.size()}; }
};

template <class Aggregate>
consteval auto field_names() {
  return []<std::size_t... index>(std::index_sequence<index...>) {
    return std::array<std::string_view, sizeof...(index)>{NameOf<Aggregate, index>::value()...};
  }
  (std::make_index_sequence<field_count<Aggregate>()>{});
}

/// Calls take(field, number) with every field, in the order of field_names().
template <class Aggregate, class Take>
void for_each_field(Aggregate& aggregate, Take&& take, std::size_t first = 0) {
  troupe::detail::for_each_member(aggregate, [&](auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (is_nested<Field>()) {
      for_each_field(field, take, first);
      first += field_count<Field>();
    } else {
      take(field, first++);
    }
  });
}

}  // namespace troupe::tune::detail
