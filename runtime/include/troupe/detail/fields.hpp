#pragma once

#include <climits>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <boost/pfr/core.hpp>
#include <boost/pfr/tuple_size.hpp>

/// The fields of an aggregate, by Boost.PFR (tried: 1.81), which refers to them one after the
/// other once it is told how many there are. It counts by `decltype(sizeof(T{}))`, in which g++ 12
/// ends with an internal error (check_noexcept_r, cp/except.cc) where a field's default is a list of
/// texts or of lists: `std::vector<std::string> names{"a", "b"}`. In a requires-expression g++ 12
/// accepts the same.
namespace troupe::detail {

/// This and AnyValue convert to a field of any type. The conversions are never defined.
struct AnyReference {
  template <class Field>
  operator Field&() const&& noexcept;
  template <class Field>
  operator Field&() const& noexcept;
};
struct AnyValue {
  template <class Field>
  operator Field() const&& noexcept;
};
template <class Any, std::size_t>
using RepeatedAny = Any;

/// Whether so many initializers fit, of which a C array takes one for each element.
template <class T, std::size_t... I>
constexpr bool takes_initializers(std::index_sequence<I...>) {
  return requires { T{RepeatedAny<AnyReference, I>{}...}; }
  || requires { T{RepeatedAny<AnyValue, I>{}...}; };
}

/// At least `low`, and less than `high`.
template <class T, std::size_t low, std::size_t high>
constexpr std::size_t count_initializers() {
  if constexpr (high - low == 1) {
    return low;
  } else {
    constexpr auto middle = low + (high - low) / 2;
    if constexpr (takes_initializers<T>(std::make_index_sequence<middle>{}))
      return count_initializers<T, middle, high>();
    else
      return count_initializers<T, low, middle>();
  }
}

template <class T>
constexpr std::size_t count_fields() {
  // A bit-field may take no more than a bit.
  if constexpr (takes_initializers<T>(std::index_sequence<>{}))
    return count_initializers<T, 0, sizeof(T) * CHAR_BIT + 1>();
  else  // a field without a default has to be given
    return boost::pfr::tuple_size_v<T>;
}

/// Of an aggregate; a C array counts with each of its elements.
template <class T>
inline constexpr std::size_t fields_of = count_fields<std::remove_cv_t<T>>();
template <class T>
using IndicesOfFields = std::make_index_sequence<fields_of<T>>;

/// References to all fields.
template <class T>
constexpr auto tied(T& value) {
  return boost::pfr::detail::tie_as_tuple(value, boost::pfr::detail::size_t_<fields_of<T>>{});
}

template <std::size_t index, class T>
constexpr auto& field_at(T& value) {
  return boost::pfr::detail::sequence_tuple::get<index>(tied(value));
}
template <std::size_t index, class T>
using FieldAt = std::remove_reference_t<decltype(field_at<index>(std::declval<T&>()))>;

/// Calls take(field) with every field.
template <class T, class Take>
constexpr void for_each_member(T& value, Take&& take) {
  const auto all = tied(value);
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (take(boost::pfr::detail::sequence_tuple::get<index>(all)), ...);
  }
  (IndicesOfFields<T>{});
}

}  // namespace troupe::detail
