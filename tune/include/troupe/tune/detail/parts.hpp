#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <troupe/detail/fields.hpp>
#include <troupe/tune/detail/configuration_type.hpp>
#include <troupe/tune/detail/field_names.hpp>

/// What a key can name in a configuration: a field, or a struct in it as a whole. The fields come
/// first, as in field_names(), then the structs: an outer one before those in it.
namespace troupe::tune::detail {

template <class Aggregate>
constexpr std::size_t struct_count() {
  const auto of = []<class Field>(std::type_identity<Field>) -> std::size_t {
    if constexpr (is_nested<Field>()) return 1 + struct_count<Field>();
    return 0;
  };
  return [&]<std::size_t... index>(std::index_sequence<index...>) {
    return (of(std::type_identity<troupe::detail::FieldAt<index, Aggregate>>{}) + ... + 0);
  }
  (FieldIndices<Aggregate>{});
}

/// A struct's name is the beginning of its first field's.
template <class Aggregate>
consteval auto names_of_parts() {
  constexpr auto fields = field_names<Aggregate>();
  std::array<std::string_view, fields.size() + struct_count<Aggregate>()> names{};
  std::ranges::copy(fields, names.begin());
  auto next = fields.size();
  for (std::size_t field = 0; field < fields.size(); ++field) {
    const auto name = fields[field];
    // Not by find(), which g++ refuses in a constant expression under its sanitizers.
    for (std::size_t dot = 0; dot < name.size(); ++dot) {
      if (name[dot] != '.') continue;
      const bool is_first = field == 0 || !fields[field - 1].starts_with(name.substr(0, dot + 1));
      if (is_first) names[next++] = name.substr(0, dot);
    }
  }
  return names;
}

/// None where the compiler has refused the configuration.
template <class Aggregate>
consteval auto part_names() {
  if constexpr (kIsConfiguration<Aggregate>)
    return names_of_parts<Aggregate>();
  else
    return std::array<std::string_view, 0>{};
}

/// A text that a compiler prints where it is a template argument.
template <std::size_t length>
struct Printed {
  char text[length];
};

/// The names of all parts: "lr, optimizer.lr, optimizer".
template <class Aggregate>
consteval auto printed_parts() {
  constexpr auto names = part_names<Aggregate>();
  constexpr auto length = [&] {
    std::size_t sum = 1;
    for (const auto name : names) sum += name.size() + 2;
    return sum;
  }();
  Printed<length> printed{};
  std::size_t at = 0;
  for (const auto name : names) {
    for (const char letter : at == 0 ? std::string_view() : std::string_view(", "))
      printed.text[at++] = letter;
    for (const char letter : name) printed.text[at++] = letter;
  }
  return printed;
}

template <class Aggregate, class Take>
void for_each_struct(Aggregate& aggregate, const Take& take, std::size_t& next) {
  troupe::detail::for_each_member(aggregate, [&](auto& field) {
    if constexpr (is_nested<std::remove_cvref_t<decltype(field)>>()) {
      take(field, next++);
      for_each_struct(field, take, next);
    }
  });
}

/// Calls take(part, number) with every part, in the order of part_names().
template <class Aggregate, class Take>
void for_each_part(Aggregate& aggregate, const Take& take) {
  if constexpr (kIsConfiguration<std::remove_const_t<Aggregate>>) {
    for_each_field(aggregate, take);
    auto next = field_count<std::remove_const_t<Aggregate>>();
    for_each_struct(aggregate, take, next);
  }
}

/// Of each part, in that order, what `Trait<type>::value` says.
template <class Aggregate, template <class> class Trait>
consteval auto of_parts() {
  constexpr auto fields = field_count<Aggregate>();
  std::array<bool, fields + struct_count<Aggregate>()> said{};
  std::size_t field = 0, next = fields;
  const auto visit = [&]<class Whole>(const auto& self, std::type_identity<Whole>) -> void {
    const auto member = [&]<class Field>(std::type_identity<Field>) {
      if constexpr (is_nested<Field>()) {
        said[next++] = Trait<Field>::value;
        self(self, std::type_identity<Field>{});
      } else {
        said[field++] = Trait<Field>::value;
      }
    };
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      (member(std::type_identity<troupe::detail::FieldAt<index, Whole>>{}), ...);
    }
    (FieldIndices<Whole>{});
  };
  visit(visit, std::type_identity<Aggregate>{});
  return said;
}

}  // namespace troupe::tune::detail
