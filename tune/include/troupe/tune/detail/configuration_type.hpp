#pragma once

#include <type_traits>

#include <troupe/detail/aggregate.hpp>

/// Why a struct can not be a configuration, in one sentence of the compiler's instead of pages about
/// how its fields are found.
namespace troupe::tune::detail {

enum class Obstacle { None, NotPlain, Base, CArray };

template <class Config>
constexpr Obstacle obstacle() {
  if constexpr (!std::is_class_v<Config> || !std::is_aggregate_v<Config>) {
    return Obstacle::NotPlain;
  } else if constexpr (troupe::detail::has_base<Config>) {
    return Obstacle::Base;
  } else if constexpr (!std::is_empty_v<Config>) {
    if constexpr (troupe::detail::has_c_array<Config>()) return Obstacle::CArray;
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
  static_assert(what != Obstacle::CArray,
                "troupe: a configuration has no C arrays, which hide where its fields are; use "
                "std::array");
  return what == Obstacle::None;
}

/// True if the type can be a configuration; else the compiler says why not, once.
template <class Config>
inline constexpr bool kIsConfiguration = is_configuration<Config, obstacle<Config>()>();

}  // namespace troupe::tune::detail
