#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <cereal/cereal.hpp>

#include <troupe/detail/fields.hpp>

/// Looks into plain aggregates, so that they travel without a line of code by their author.
namespace troupe::detail {

class OutArchive;
class InArchive;

/// Stands for any archive, so that an author's free `serialize` is found and ours, which is for our
/// archives only, is not.
struct ProbeArchive {
  template <class... T>
  void operator()(T&&...);
};

/// The author's free `serialize`.
template <class T>
concept FreeSerialized = requires(ProbeArchive& archive, T& value) {
  CEREAL_SERIALIZE_FUNCTION_NAME(archive, value);
};

/// Brings its own cereal functions.
template <class T>
concept UserSerialized =
    FreeSerialized<T> || cereal::traits::has_member_serialize<T, OutArchive>::value ||
    cereal::traits::has_member_save<T, OutArchive>::value ||
    cereal::traits::has_member_save_minimal<T, OutArchive>::value ||
    cereal::traits::has_non_member_save<T, OutArchive>::value ||
    cereal::traits::has_non_member_save_minimal<T, OutArchive>::value;

template <class T>
concept Plain = std::is_class_v<T> && std::is_aggregate_v<T> && !UserSerialized<T>;

struct Anything {
  template <class T>
  operator T() const;
};

template <class Derived>
struct AnyBaseOf {
  template <class Base>
  requires(std::is_base_of_v<Base, Derived> && !std::is_same_v<Base, Derived>) operator Base()
      const;
};

template <class T>
inline constexpr bool has_base = requires {
  T{AnyBaseOf<T>{}};
};

template <std::size_t>
using AnythingAt = Anything;

/// Do all `sizeof...(After)` initializers that follow still fit, when the member at Before takes
/// two in braces?
template <class T, std::size_t... Before, std::size_t... After>
constexpr bool takes_pair(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{AnythingAt<Before>{}..., {Anything{}, Anything{}}, AnythingAt<After>{}...}; };
}

/// True if T has a C array of two or more elements. Initializers without braces go one to an
/// element, so the count of them (PFR's) exceeds the members: a braced pair at an array's place
/// then leaves one initializer too many.
template <class T>
constexpr bool has_c_array() {
  constexpr auto count = fields_of<T>;
  constexpr auto any = []<std::size_t... I>(std::index_sequence<I...>) {
    return ((takes_pair<T>(std::make_index_sequence<I>{}, std::index_sequence<>{}) &&
             !takes_pair<T>(std::make_index_sequence<I>{},
                            std::make_index_sequence<count - I - 1>{})) ||
            ...);
  };
  return any(std::make_index_sequence<count>{});
}

template <class T>
struct is_std_array : std::false_type {};
template <class T, std::size_t N>
struct is_std_array<std::array<T, N>> : std::true_type {};

template <class T>
constexpr std::size_t packed_size();

template <class T, std::size_t... I>
constexpr std::size_t packed_fields(std::index_sequence<I...>) {
  constexpr bool all = ((packed_size<FieldAt<I, T>>() != 0) && ...);
  if constexpr (all) {
    return (packed_size<FieldAt<I, T>>() + ... + 0);
  } else {
    return 0;
  }
}

/// Bytes of T where every byte is part of a number and any value of it is valid: such a T is copied
/// as it lies. Otherwise 0: bools and enums are checked, padding would leak what lay there before.
template <class T>
constexpr std::size_t packed_size() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::is_same_v<T, bool> || std::is_same_v<T, long double> ? 0 : sizeof(T);
  } else if constexpr (is_std_array<T>::value) {
    return packed_size<typename T::value_type>() * std::tuple_size_v<T>;
  } else if constexpr (std::is_trivially_copyable_v<T> && !std::is_empty_v<T> && Plain<T>) {
    if constexpr (has_base<T>) {
      return 0;
    } else if constexpr (has_c_array<T>()) {
      return 0;
    } else {
      return packed_fields<T>(IndicesOfFields<T>{});
    }
  } else {
    return 0;
  }
}

template <class T>
inline constexpr bool packed = packed_size<T>() == sizeof(T);

}  // namespace troupe::detail

namespace cereal {

/// An empty aggregate takes one byte, so that the count of elements in a message never exceeds its
/// bytes.
template <class Archive, class T>
requires(
    troupe::detail::Plain<T> &&
    (std::is_same_v<Archive, troupe::detail::OutArchive> ||
     std::is_same_v<
         Archive, troupe::detail::InArchive>)) void CEREAL_SERIALIZE_FUNCTION_NAME(Archive& archive,
                                                                                   T& value) {
  if constexpr (std::is_empty_v<T>) {
    std::uint8_t nothing = 0;
    archive(nothing);
  } else {
    troupe::detail::for_each_member(value, [&](auto& field) { archive(field); });
  }
}

}  // namespace cereal
