#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <boost/preprocessor/repetition/enum_params.hpp>
#include <boost/preprocessor/repetition/repeat.hpp>
#include <boost/preprocessor/repetition/repeat_from_to.hpp>

#include <troupe/detail/fields.hpp>

/// Whether an aggregate has a bit-field. No reference binds to one, so that Boost.PFR, which refers to
/// all fields, ends in pages of errors. Clang before 16 takes no local binding in a
/// requires-expression: to it no aggregate has one.
namespace troupe::detail {

template <std::size_t count>
struct FieldCount {};

/// Whether each has an address, which a bit-field has not. Of more fields Boost.PFR refuses the type.
template <class T, std::size_t count>
std::true_type has_addresses(T&, FieldCount<count>, ...);

#if !defined(__clang__) || __clang_major__ >= 16
#define TROUPE_HAS_ADDRESS(_, field, __) \
  &&requires { &f##field; }
#define TROUPE_HAS_ADDRESSES(_, count, __)                                          \
  template <class T>                                                                \
  auto has_addresses(T& value, FieldCount<count>, int) {                            \
    auto& [BOOST_PP_ENUM_PARAMS(count, f)] = value;                                 \
    return std::bool_constant<true BOOST_PP_REPEAT(count, TROUPE_HAS_ADDRESS, )>{}; \
  }
BOOST_PP_REPEAT_FROM_TO(1, 101, TROUPE_HAS_ADDRESSES, )
#undef TROUPE_HAS_ADDRESSES
#undef TROUPE_HAS_ADDRESS
#endif

/// Of an aggregate without bases and C arrays.
template <class T>
constexpr bool has_bit_field() {
  if constexpr (std::is_empty_v<T>)
    return false;
  else
    return !decltype(has_addresses(std::declval<T&>(), FieldCount<fields_of<T>>{}, 0))::value;
}

}  // namespace troupe::detail
