#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include <troupe/tune/detail/parts.hpp>
#include <troupe/tune/detail/written.hpp>
#include <troupe/tune/domain.hpp>

/// What values a field of a configuration takes, and how it is given one and asked for the one that it
/// has.
namespace troupe::tune::detail {

/// What values a field takes; empty: it can not be searched.
template <class Field>
constexpr std::string_view taken_by() {
  if constexpr (std::is_same_v<Field, bool>) return "a truth value";
  if constexpr (std::is_integral_v<Field>) return "an integer";
  if constexpr (std::is_floating_point_v<Field>) return "a number";
  if constexpr (kIsText<Field>) return "text";
  if constexpr (kIsOptional<Field>) return taken_by<typename Field::value_type>();
  if constexpr (!is_written<Field>()) return "";
  if constexpr (std::is_enum_v<Field>) return "the name of an enumerator";
  if constexpr (is_nested<Field>()) return "a struct, written as {lr: 0.1, layers: 2}";
  return "a list, written as [64, 32]";
}
template <class Field>
struct IsTaken : std::bool_constant<!taken_by<Field>().empty()> {};

[[noreturn]] void refuse_value(std::string_view field, std::string_view takes, const Scalar& value);
/// Of a field of integers.
[[noreturn]] void refuse_no_integer(std::string_view field, const Scalar& value);
[[noreturn]] void refuse_range(std::string_view field, std::string_view low, std::string_view high,
                               const Scalar& value);
[[noreturn]] void refuse_field(std::string_view field);
/// Of a real field, which would hold another number than this integer.
[[noreturn]] void refuse_inexact(std::string_view field, const Scalar& integer);

/// `why`: what stands where in the text.
[[noreturn]] void refuse_text(std::string_view field, std::string_view takes, const Scalar& text,
                              std::string_view why);

/// Whether a field takes values of this one's kind.
template <class Field>
bool takes(const Scalar::Value& value) {
  if constexpr (std::is_same_v<Field, bool>) {
    return std::holds_alternative<bool>(value);
  } else if constexpr (std::is_integral_v<Field>) {
    return std::holds_alternative<std::int64_t>(value);
  } else if constexpr (std::is_floating_point_v<Field>) {
    return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
  } else if constexpr (kIsOptional<Field>) {
    return std::holds_alternative<std::string>(value) || takes<typename Field::value_type>(value);
  } else {
    return std::holds_alternative<std::string>(value);
  }
}

/// Throws where the number is finite, and the field would hold infinity in its place.
template <class Field>
void check_magnitude(std::string_view name, double number) {
  if constexpr (sizeof(Field) < sizeof(double)) {
    constexpr double most = std::numeric_limits<Field>::max();
    if (std::isfinite(number) && std::abs(number) > most)
      refuse_range(name, to_string(-most), to_string(most), number);
  }
}

/// Stores `value`, or throws std::invalid_argument with the field's name. A real field takes
/// integers that it holds exactly; nothing else converts, and an integer has to fit its field.
template <class Field>
void assign_field(std::string_view name, Field& field, const Scalar& scalar) {
  const auto& value = scalar.value();
  if constexpr (std::is_same_v<Field, bool>) {
    if (auto* truth = std::get_if<bool>(&value))
      field = *truth;
    else
      refuse_value(name, taken_by<Field>(), scalar);
  } else if constexpr (std::is_integral_v<Field>) {
    auto* whole = std::get_if<std::int64_t>(&value);
    if (!whole) refuse_no_integer(name, scalar);
    using Limits = std::numeric_limits<Field>;
    if (!fits<Field>(*whole))
      refuse_range(name, std::to_string(Limits::min()), std::to_string(Limits::max()), scalar);
    field = static_cast<Field>(*whole);
  } else if constexpr (std::is_floating_point_v<Field>) {
    if (auto* real = std::get_if<double>(&value)) {
      check_magnitude<Field>(name, *real);
      field = static_cast<Field>(*real);
    } else if (auto* whole = std::get_if<std::int64_t>(&value)) {
      if (!holds_integer<Field>(*whole)) refuse_inexact(name, scalar);
      field = static_cast<Field>(*whole);
    } else
      refuse_value(name, taken_by<Field>(), scalar);
  } else if constexpr (kIsText<Field>) {
    if (auto* text = std::get_if<std::string>(&value))
      field = *text;
    else
      refuse_value(name, taken_by<Field>(), scalar);
  } else if constexpr (kIsOptional<Field>) {
    if (scalar == Scalar("none"))
      field.reset();
    else
      assign_field(name, field.emplace(), scalar);
  } else if constexpr (is_written<Field>()) {
    auto* text = std::get_if<std::string>(&value);
    if (!text) refuse_value(name, taken_by<Field>(), scalar);
    try {
      WrittenReader reader(*text);
      read_written(reader, field);
      reader.end();
    } catch (const std::invalid_argument& refused) {
      refuse_text(name, taken_by<Field>(), scalar, refused.what());
    }
  } else {
    refuse_field(name);
  }
}

template <class Config>
void assign(Config& config, std::size_t index, const Scalar& value) {
  for_each_part(config, [&](auto& part, std::size_t at) {
    if (at == index) assign_field(part_names<Config>()[index], part, value);
  });
}

/// Stores the values that a domain is written with, and of integers those beside its bounds: a field that takes them
/// takes all between them.
template <class Config>
void assign_ends(Config& config, std::size_t index, const Domain& domain) {
  for (const auto& value : domain.values()) assign(config, index, value);
  const auto last = domain.last_step();
  if (!last || *last == 0) return;
  assign(config, index, domain.at_step(1));
  assign(config, index, domain.at_step(*last - 1));
}

/// `value`: what the field holds, as text.
[[noreturn]] void refuse_outside(std::string_view field, const std::string& value,
                                 const Domain& domain);

template <class Field>
std::string text_of(const Field& field) {
  if constexpr (Searchable<Field>) return to_string(as_scalar(field));
  return "a value";
}

/// The value of the domain that a field holds: of a constant that one, whatever the field holds.
/// Throws std::invalid_argument, naming the field, where the domain has none like it.
template <class Field>
Scalar value_in(std::string_view name, const Domain& domain, const Field& field) {
  // Fields of other types are only copied, and need neither an operator== nor a default.
  if constexpr (taken_by<Field>().empty()) {
    refuse_field(name);
  } else {
    const auto holds = [&](const Scalar& value) {
      Field probe{};
      assign_field(name, probe, value);
      if constexpr (std::is_arithmetic_v<Field> || kIsText<Field>)
        return probe == field;
      else  // it needs no operator==
        return written(probe) == written(field);
    };
    if (domain.kind() == Domain::Kind::Constant) return domain.values().front();
    if constexpr (kIsOptional<Field>) {
      if (field && as_scalar(*field) == Scalar("none")) refuse_none();
      if (field && domain.range()) return value_in(name, domain, *field);
    }
    if constexpr (std::is_integral_v<Field> && !std::is_same_v<Field, bool>) {
      // Not by way of a double, which has not all of them.
      if (fits_64_bits(field)) {
        const Scalar whole(static_cast<std::int64_t>(field));
        if (domain.contains(whole)) return whole;
      }
    }
    if constexpr (std::is_arithmetic_v<Field>) {
      if (domain.range()) {
        const auto nearest = domain.nearest(static_cast<double>(field));
        if (holds(nearest)) return nearest;
        refuse_outside(name, text_of(field), domain);
      }
    }
    for (const auto& value : domain.values()) {
      if (holds(value)) return value;
    }
    refuse_outside(name, text_of(field), domain);
  }
}

}  // namespace troupe::tune::detail
