#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <boost/preprocessor/repetition/enum_params.hpp>
#include <boost/preprocessor/repetition/repeat.hpp>
#include <boost/preprocessor/repetition/repeat_from_to.hpp>

#include <troupe/detail/fields.hpp>

/// Whether an aggregate has members to which no reference binds, so that Boost.PFR, which refers to all
/// fields, ends in pages of errors: bit-fields, and those of an anonymous union, of which the compiler
/// says that nothing can be bound to them. Clang before 16 takes no local binding in a
/// requires-expression: to it no aggregate has either.
namespace troupe::detail {

template <std::size_t count>
struct FieldCount {};

template <bool names, bool addresses>
struct FieldsHave {
  static constexpr bool kNames =
      names;  // not behind an anonymous union, after the compiler's error
  static constexpr bool kAddresses = addresses;  // and not in a bit-field either
};

/// Of more fields Boost.PFR refuses the type.
template <class T, std::size_t count>
FieldsHave<true, true> bind_fields(T&, FieldCount<count>, ...);

#if !defined(__clang__) || __clang_major__ >= 16
#define TROUPE_HAS_NAME(_, field, __) \
  &&requires { f##field; }
#define TROUPE_HAS_ADDRESS(_, field, __) \
  &&requires { &f##field; }
#define TROUPE_BIND_FIELDS(_, count, __)                                    \
  template <class T>                                                        \
  auto bind_fields(T& value, FieldCount<count>, int) {                      \
    auto& [BOOST_PP_ENUM_PARAMS(count, f)] = value;                         \
    return FieldsHave<true BOOST_PP_REPEAT(count, TROUPE_HAS_NAME, ),       \
                      true BOOST_PP_REPEAT(count, TROUPE_HAS_ADDRESS, )>{}; \
  }
BOOST_PP_REPEAT_FROM_TO(1, 101, TROUPE_BIND_FIELDS, )
#undef TROUPE_BIND_FIELDS
#undef TROUPE_HAS_ADDRESS
#undef TROUPE_HAS_NAME
#endif

template <class T>
using BoundFields = decltype(bind_fields(std::declval<T&>(), FieldCount<fields_of<T>>{}, 0));

/// Of an aggregate without bases and C arrays, that is not empty.
template <class T>
constexpr bool has_anonymous_union() {
  return !BoundFields<T>::kNames;
}
template <class T>
constexpr bool has_bit_field() {
  return BoundFields<T>::kNames && !BoundFields<T>::kAddresses;
}

}  // namespace troupe::detail
