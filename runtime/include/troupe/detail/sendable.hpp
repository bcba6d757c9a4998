#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/detail/codec.hpp>
#include <troupe/detail/fields.hpp>
#include <troupe/detail/names.hpp>
#include <troupe/detail/unreachable_fields.hpp>

/// Can a type travel, and if not, which part of it cannot and why: one sentence from the compiler
/// instead of a page.
namespace troupe::detail {

template <class... T>
struct Types {};

/// What stands inside a standard type. `void`: nothing that we know of.
template <class T>
struct Inside {
  using type = void;
};
#define TROUPE_INSIDE(PARAMETERS, TYPE, ...) \
  template <PARAMETERS>                      \
  struct Inside<TYPE> {                      \
    using type = Types<__VA_ARGS__>;         \
  };
#define TROUPE_LIST(...) __VA_ARGS__
TROUPE_INSIDE(TROUPE_LIST(class T, class A), TROUPE_LIST(std::vector<T, A>), T)
TROUPE_INSIDE(TROUPE_LIST(class T, class A), TROUPE_LIST(std::deque<T, A>), T)
TROUPE_INSIDE(TROUPE_LIST(class T, class A), TROUPE_LIST(std::list<T, A>), T)
TROUPE_INSIDE(TROUPE_LIST(class T, std::size_t N), TROUPE_LIST(std::array<T, N>), T)
TROUPE_INSIDE(class T, std::optional<T>, T)
TROUPE_INSIDE(class T, std::complex<T>, T)
TROUPE_INSIDE(TROUPE_LIST(class A, class B), TROUPE_LIST(std::pair<A, B>), A, B)
TROUPE_INSIDE(class... T, std::tuple<T...>, T...)
TROUPE_INSIDE(class... T, std::variant<T...>, T...)
TROUPE_INSIDE(TROUPE_LIST(class K, class C, class A), TROUPE_LIST(std::set<K, C, A>), K)
TROUPE_INSIDE(TROUPE_LIST(class K, class C, class A), TROUPE_LIST(std::multiset<K, C, A>), K)
TROUPE_INSIDE(TROUPE_LIST(class K, class V, class C, class A), TROUPE_LIST(std::map<K, V, C, A>), K,
              V)
TROUPE_INSIDE(TROUPE_LIST(class K, class V, class C, class A),
              TROUPE_LIST(std::multimap<K, V, C, A>), K, V)
TROUPE_INSIDE(TROUPE_LIST(class K, class H, class E, class A),
              TROUPE_LIST(std::unordered_set<K, H, E, A>), K)
TROUPE_INSIDE(TROUPE_LIST(class K, class V, class H, class E, class A),
              TROUPE_LIST(std::unordered_map<K, V, H, E, A>), K, V)
#undef TROUPE_LIST
#undef TROUPE_INSIDE

enum class Obstacle {
  None,
  Pointer,
  Reference,
  View,
  Function,
  CArray,
  AnonymousUnion,
  BitField,
  Base,
  Virtual,
  NoDefault,
  StaysPut,
  OfProcess,
  NoCode,
};
template <Obstacle What, class Culprit>
struct Finding {
  static constexpr Obstacle what = What;
  using type = Culprit;
};
using Fine = Finding<Obstacle::None, void>;

template <class T, class... Seen>
constexpr auto inspect();

template <class... Seen>
constexpr auto first_finding(Types<>, Types<Seen...>) {
  return Fine{};
}
template <class T, class... Rest, class... Seen>
constexpr auto first_finding(Types<T, Rest...>, Types<Seen...>) {
  using Found = decltype(inspect<T, Seen...>());
  if constexpr (Found::what != Obstacle::None) {
    return Found{};
  } else {
    return first_finding(Types<Rest...>{}, Types<Seen...>{});
  }
}

template <class T, std::size_t... I>
constexpr auto types_of_fields(std::index_sequence<I...>) {
  return Types<std::remove_cv_t<FieldAt<I, T>>...>{};
}

template <class T>
inline constexpr bool is_view = false;
template <class C, class R>
inline constexpr bool is_view<std::basic_string_view<C, R>> = true;
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;

template <class T>
inline constexpr bool is_function = false;
template <class F>
inline constexpr bool is_function<std::function<F>> = true;

/// A class of the standard library. Of those that cereal does not know, nearly all are tied to
/// their process: threads, futures, streams, locks.
template <class T>
inline constexpr bool is_standard = type_name<T>.substr(0, 5) == "std::";

/// Cereal would find the author's functions for T, or knows T itself.
template <class T>
inline constexpr bool has_code = cereal::traits::is_output_serializable<T, OutArchive>::value&&
    cereal::traits::is_input_serializable<T, InArchive>::value;

/// Whether what defines cereal's functions for this pointer type knows what it points to, although
/// that has virtual functions.
template <class T>
inline constexpr bool has_code_for_pointer = false;

/// An aggregate without code, field by field.
template <class T, class... Seen>
constexpr auto inspect_plain() {
  if constexpr (std::is_empty_v<T>) {
    return Fine{};
  } else if constexpr (has_base<T>) {
    return Finding<Obstacle::Base, T>{};
  } else if constexpr (has_c_array<T>()) {
    return Finding<Obstacle::CArray, T>{};
  } else if constexpr (has_anonymous_union<T>()) {
    return Finding<Obstacle::AnonymousUnion, T>{};
  } else if constexpr (has_bit_field<T>()) {
    return Finding<Obstacle::BitField, T>{};
  } else {
    return first_finding(types_of_fields<T>(IndicesOfFields<T>{}), Types<T, Seen...>{});
  }
}

template <class T, class... Seen>
constexpr auto inspect_pointee() {
  if constexpr (std::is_polymorphic_v<T>) {
    return Finding<Obstacle::Virtual, T>{};
  } else {
    return inspect<std::remove_const_t<T>, Seen...>();
  }
}

template <class T, class... Seen>
constexpr auto inspect() {
  if constexpr (std::is_void_v<T> || (std::is_same_v<T, Seen> || ...)) {
    return Fine{};
  } else if constexpr (std::is_pointer_v<T> || std::is_member_pointer_v<T> ||
                       std::is_null_pointer_v<T>) {
    return Finding<Obstacle::Pointer, T>{};
  } else if constexpr (std::is_reference_v<T>) {
    return Finding<Obstacle::Reference, T>{};
  } else if constexpr (std::is_array_v<T>) {
    return Finding<Obstacle::CArray, T>{};
  } else if constexpr (is_view<T>) {
    return Finding<Obstacle::View, T>{};
  } else if constexpr (is_function<T>) {
    return Finding<Obstacle::Function, T>{};
  } else if constexpr (has_code_for_pointer<T>) {
    return Fine{};
  } else if constexpr (is_smart_pointer<T>) {
    return inspect_pointee<typename T::element_type, T, Seen...>();
  } else if constexpr (!std::is_void_v<typename Inside<T>::type>) {
    return first_finding(typename Inside<T>::type{}, Types<T, Seen...>{});
  } else if constexpr (!std::is_default_constructible_v<T>) {
    return Finding<Obstacle::NoDefault, T>{};
  } else if constexpr (Plain<T>) {
    return inspect_plain<T, Seen...>();
  } else if constexpr (has_code<T>) {
    return Fine{};
  } else if constexpr (!std::is_move_constructible_v<T>) {
    return Finding<Obstacle::StaysPut, T>{};
  } else if constexpr (is_standard<T>) {
    return Finding<Obstacle::OfProcess, T>{};
  } else {
    return Finding<Obstacle::NoCode, T>{};
  }
}

/// The error below shows both types: `Culprit` is the part of `Value` that cannot travel.
template <class Value, class Culprit, Obstacle What>
constexpr bool explain() {
  static_assert(
      What != Obstacle::Pointer,
      "troupe: a raw pointer cannot travel; send the value, a std::unique_ptr to it, or an Actor");
  static_assert(What != Obstacle::Reference, "troupe: a reference cannot travel; send the value");
  static_assert(What != Obstacle::View,
                "troupe: a view does not own what it shows and cannot travel; use std::string or "
                "std::vector");
  static_assert(What != Obstacle::Function,
                "troupe: a std::function cannot travel; make the function a template argument, or "
                "send what it depends on and choose the function where it is called");
  static_assert(What != Obstacle::CArray, "troupe: a C array cannot travel; use std::array");
  static_assert(What != Obstacle::AnonymousUnion,
                "troupe: an anonymous union cannot travel, as nothing says which of its members is "
                "there; use std::variant");
  static_assert(What != Obstacle::BitField,
                "troupe: a bit-field cannot travel, as nothing can refer to it; use a bool or a "
                "whole integer");
  static_assert(
      What != Obstacle::Base,
      "troupe: an aggregate with a base class needs a cereal serialize(Archive&) to travel");
  static_assert(
      What != Obstacle::Virtual,
      "troupe: a pointer to a class with virtual functions cannot travel; use std::variant");
  static_assert(
      What != Obstacle::NoDefault,
      "troupe: a value that travels needs a default constructor; with constructors it also "
      "needs a cereal serialize(Archive&)");
  static_assert(
      What != Obstacle::StaysPut,
      "troupe: what can be neither copied nor moved, as a mutex or an atomic, stays in its "
      "process: send the value that it guards, or have an actor own it and send the Actor");
  static_assert(
      What != Obstacle::OfProcess,
      "troupe: this class of the standard library cannot travel, as a thread, a future or a stream "
      "stays in its process: send what it is made from, such as a file's path, or have an actor "
      "own it and send the Actor; of one that only holds values include cereal's header");
  static_assert(What != Obstacle::NoCode,
                "troupe: this type cannot travel; make it a plain aggregate (all fields public, no "
                "constructor), or give it a cereal serialize(Archive&)");
  return What == Obstacle::None;
}

/// True if a T can be encoded and decoded.
template <class T>
constexpr bool sendable() {
  return decltype(inspect<T>())::what == Obstacle::None;
}

/// Likewise, with the compiler saying why not.
template <class T>
constexpr bool require_sendable() {
  using Found = decltype(inspect<T>());
  return explain<T, typename Found::type, Found::what>();
}

}  // namespace troupe::detail
