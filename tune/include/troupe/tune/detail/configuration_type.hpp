#pragma once

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include <troupe/detail/aggregate.hpp>
#include <troupe/detail/sendable.hpp>
#include <troupe/detail/trainable/trainable_worker.hpp>
#include <troupe/detail/unreachable_fields.hpp>
#include <troupe/tune/detail/field_names.hpp>

/// Why a struct can not be a configuration, in one sentence of the compiler's instead of pages about
/// how its fields are found.
namespace troupe::tune::detail {

enum class Obstacle {
  None,
  NotPlain,
  Base,
  NoDefault,
  NoCopy,
  NoAssignment,
  CArray,
  AnonymousUnion,
  BitField
};

template <class Config>
constexpr Obstacle obstacle() {
  if constexpr (!std::is_class_v<Config> || !std::is_aggregate_v<Config>) {
    return Obstacle::NotPlain;
  } else if constexpr (troupe::detail::has_base<Config>) {
    return Obstacle::Base;
  } else if constexpr (!std::is_default_constructible_v<Config>) {
    return Obstacle::NoDefault;
  } else if constexpr (!std::is_copy_constructible_v<Config>) {
    return Obstacle::NoCopy;
  } else if constexpr (!std::is_copy_assignable_v<Config>) {
    return Obstacle::NoAssignment;
  } else if constexpr (!std::is_empty_v<Config>) {
    if constexpr (troupe::detail::has_c_array<Config>())
      return Obstacle::CArray;
    else if constexpr (troupe::detail::has_anonymous_union<Config>())
      return Obstacle::AnonymousUnion;
    else if constexpr (troupe::detail::has_bit_field<Config>())
      return Obstacle::BitField;
  }
  return Obstacle::None;
}

/// The compiler's error shows the type.
template <class Config, Obstacle what>
constexpr bool is_configuration() {
  static_assert(what != Obstacle::NotPlain,
                "troupe: a configuration is an aggregate: a struct whose fields are all public, "
                "without constructors and virtual functions; give the fields their values in place "
                "(double lr = 0.1)");
  static_assert(what != Obstacle::Base,
                "troupe: a configuration has no base class, whose fields could not be named; make "
                "it a field, whose own are named \"base.lr\"");
  static_assert(what != Obstacle::NoDefault,
                "troupe: every field of a configuration has a value without being given one, which "
                "a reference has not; give the fields their values in place (double lr = 0.1)");
  static_assert(
      what != Obstacle::NoCopy,
      "troupe: a configuration is copied to its trials, so that no field of it may be one "
      "that can not be copied (a mutex, an atomic, a unique_ptr)");
  static_assert(what != Obstacle::NoAssignment,
                "troupe: a configuration is assigned to, so that no field of it may be const or "
                "a reference; what the space leaves out stays as it is");
  static_assert(what != Obstacle::CArray,
                "troupe: a configuration has no C arrays, which hide where its fields are; use "
                "std::array");
  static_assert(
      what != Obstacle::AnonymousUnion,
      "troupe: a configuration has no anonymous union, as nothing says which of its "
      "members is there; make its members fields, std::optional where one may be missing");
  static_assert(
      what != Obstacle::BitField,
      "troupe: a configuration has no bit-fields, as nothing can refer to one; use a bool "
      "or a whole integer");
  return what == Obstacle::None;
}

/// Stands in the compiler's error for a field, whose name ends the address.
template <auto address>
struct Field;

/// Without the advice of the runtime, a unique_ptr, which can not be copied to several trials.
template <class Where>
constexpr bool has_no_pointer() {
  static_assert(std::is_void_v<Where>,
                "troupe: a configuration is sent to its trials, where a raw pointer points to "
                "nothing; make the field the value itself, or std::optional of it");
  return false;
}

/// Whether the members from this one on can be sent to a trial; the compiler says which can not, and why.
template <class Struct, std::size_t member>
constexpr bool are_sent() {
  if constexpr (member == troupe::detail::fields_of<Struct>) {
    return true;
  } else {
    using Member = troupe::detail::FieldAt<member, Struct>;
    using Found = decltype(troupe::detail::inspect<Member>());
    if constexpr (Found::what == troupe::detail::Obstacle::None)
      return are_sent<Struct, member + 1>();
    else if constexpr (is_nested<Member>() && !std::is_same_v<typename Found::type, Member>)
      return are_sent<Member, 0>();
    else if constexpr (Found::what == troupe::detail::Obstacle::Pointer)
      return has_no_pointer<Field<field_address<Struct, member>()>>();
    else
      return troupe::detail::explain<Field<field_address<Struct, member>()>, typename Found::type,
                                     Found::what>();
  }
}

template <class Config>
constexpr bool check_configuration() {
  if constexpr (!is_configuration<Config, obstacle<Config>()>())
    return false;
  else if constexpr (troupe::detail::sendable<Config>() || std::is_empty_v<Config>)
    return true;
  else
    return are_sent<Config, 0>();
}

/// True if the type can be a configuration; else the compiler says why not, once. Of a search that is
/// only simulated or loaded too: it is one that can run.
template <class Config>
inline constexpr bool kIsConfiguration = check_configuration<Config>();
template <>
inline constexpr bool kIsConfiguration<troupe::detail::NoTrainable> = false;

/// Config{}, but where the compiler has refused Config.
template <class Config>
Config defaults() {
  if constexpr (kIsConfiguration<Config>)
    return {};
  else
    std::abort();
}

}  // namespace troupe::tune::detail
