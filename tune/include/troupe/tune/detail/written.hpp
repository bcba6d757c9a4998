#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/aggregate.hpp>
#include <troupe/detail/fields.hpp>
#include <troupe/tune/detail/enum_names.hpp>
#include <troupe/tune/detail/field_names.hpp>
#include <troupe/tune/scalar.hpp>

/// A value that is no Scalar is searched as the text that it is written as, which its type alone
/// reads back: an enumerator as Relu, a vector as [64, 32], a struct as {lr: 0.1, name: "adam"}, an
/// optional without a value as none. So no optional of an optional, or of an enum with an enumerator
/// `none`, is written.
namespace troupe::tune::detail {

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsText =
    std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>;

/// Not wchar_t and its kin.
template <class T>
concept WrittenNumber =
    std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && requires(T & number, const char* text) {
  std::from_chars(text, text, number);
};

/// Whether one of its values is written as an optional without a value is.
template <class T>
constexpr bool is_written_as_none() {
  if constexpr (std::is_enum_v<T>)
    return enumerator_of<T>("none").has_value();
  else
    return kIsOptional<T>;
}

/// Whether the type can be written and read back. `Outer`: in which it stands.
template <class T, class... Outer>
constexpr bool is_written() {
  if constexpr ((std::is_same_v<T, Outer> || ...)) {
    return false;
  } else if constexpr (std::is_same_v<T, bool> || WrittenNumber<T> || kIsText<T> ||
                       std::is_enum_v<T>) {
    return true;
  } else if constexpr (kIsOptional<T>) {
    return !is_written_as_none<typename T::value_type>() &&
           is_written<typename T::value_type, T, Outer...>();
  } else if constexpr (kIsVector<T> || troupe::detail::is_std_array<T>::value) {
    return is_written<typename T::value_type, T, Outer...>();
  } else if constexpr (is_nested<T>()) {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return (is_written<troupe::detail::FieldAt<i, T>, T, Outer...>() && ...);
    }
    (FieldIndices<T>{});
  } else {
    return false;
  }
}

/// What a domain can have among its values.
template <class T>
concept Searchable = std::constructible_from<Scalar, const T&> || is_written<T>();

template <class T>
struct IsWritten : std::bool_constant<is_written<T>()> {};

template <class Struct>
consteval auto member_names() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<std::string_view, sizeof...(i)>{field_name<field_address<Struct, i>()>()...};
  }
  (FieldIndices<Struct>{});
}

/// In quotes, which are \" in it, as \ is \\.
std::string in_quotes(std::string_view text);

template <class T>
std::string written(const T& value);

template <class Values>
std::string written_list(const Values& values) {
  std::string text;
  for (const typename Values::value_type& each : values)
    text += (text.empty() ? "" : ", ") + written(each);
  return "[" + text + "]";
}

template <class Struct>
std::string written_struct(const Struct& value) {
  constexpr auto names = member_names<Struct>();
  std::string text;
  std::size_t member = 0;
  troupe::detail::for_each_member(value, [&](const auto& field) {
    text += (member == 0 ? "" : ", ") + std::string(names[member]) + ": " + written(field);
    ++member;
  });
  return "{" + text + "}";
}

template <class T>
std::string written(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  } else if constexpr (kIsText<T>) {
    return in_quotes(std::string(value));
  } else if constexpr (std::is_enum_v<T>) {
    const auto name = enumerator_name(value);
    if (!name.empty()) return std::string(name);
    return std::to_string(static_cast<EnumNumber<T>>(value));
  } else if constexpr (kIsOptional<T>) {
    return value ? written(*value) : "none";
  } else if constexpr (is_nested<T>()) {
    return written_struct(value);
  } else {
    return written_list(value);
  }
}

/// Reads what is written, part by part. Blanks between the parts count for nothing. Each throws
/// std::invalid_argument, which names the place, where something else comes next.
class WrittenReader {
 public:
  explicit WrittenReader(std::string_view text) : text_{text} {}

  /// Passes it where it comes next; else nothing happens.
  bool passes(char sign);
  void pass(char sign);
  /// What stands before the next blank, comma, colon or bracket.
  std::string_view word();
  /// What in_quotes() gave.
  std::string text();
  void end();
  [[noreturn]] void refuse(const std::string& wanted) const;

 private:
  void pass_blanks();

  std::string_view text_;
  std::size_t at_ = 0;
};

template <class T>
void read_written(WrittenReader& reader, T& value);

template <class Number>
void read_number(WrittenReader& reader, Number& value) {
  const auto before = reader;
  const auto word = reader.word();
  const auto* const end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, value);
  bool is_read = error == std::errc() && at == end;
  if constexpr (std::is_floating_point_v<Number>) is_read = is_read && std::isfinite(value);
  if (!is_read)
    before.refuse(std::is_integral_v<Number> ? "an integer of its type" : "a finite number");
}

/// For errors.
template <class Enum>
std::string enumerators() {
  std::string all;
  for (const auto name : kEnumeratorNames<Enum>) {
    if (!name.empty()) all += (all.empty() ? "one of " : ", ") + std::string(name);
  }
  return all.empty() ? "the number of an enumerator" : all;
}

/// One with a name is not read by its number: it would be another value of a domain.
template <class Enum>
void read_enumerator(WrittenReader& reader, Enum& value) {
  const auto before = reader;
  const auto word = reader.word();
  if (const auto named = enumerator_of<Enum>(word)) {
    value = *named;
    return;
  }
  EnumNumber<Enum> number{};
  const auto* const end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, number);
  const bool is_read = error == std::errc() && at == end && has_value<Enum>(number);
  if (!is_read || !enumerator_name(static_cast<Enum>(number)).empty())
    before.refuse(enumerators<Enum>());
  value = static_cast<Enum>(number);
}

template <class T>
void read_vector(WrittenReader& reader, std::vector<T>& values) {
  values.clear();
  reader.pass('[');
  if (reader.passes(']')) return;
  do {
    T each{};
    read_written(reader, each);
    values.push_back(std::move(each));
  } while (reader.passes(','));
  reader.pass(']');
}

template <class Array>
void read_array(WrittenReader& reader, Array& values) {
  reader.pass('[');
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && !reader.passes(','))
      reader.refuse("',': it has " + std::to_string(i) + " of " + std::to_string(values.size()) +
                    " values");
    read_written(reader, values[i]);
  }
  if (!reader.passes(']'))
    reader.refuse("']': it has more than " + std::to_string(values.size()) + " values");
}

template <class Struct>
void read_struct(WrittenReader& reader, Struct& value) {
  constexpr auto names = member_names<Struct>();
  std::size_t member = 0;
  reader.pass('{');
  troupe::detail::for_each_member(value, [&](auto& field) {
    if (member > 0) reader.pass(',');
    const auto before = reader;
    if (reader.word() != names[member])
      before.refuse("the field " + std::string(names[member]) + ":");
    reader.pass(':');
    read_written(reader, field);
    ++member;
  });
  reader.pass('}');
}

template <class T>
void read_written(WrittenReader& reader, T& value) {
  const auto before = reader;
  if constexpr (std::is_same_v<T, bool>) {
    const auto word = reader.word();
    if (word != "true" && word != "false") before.refuse("true or false");
    value = word == "true";
  } else if constexpr (std::is_arithmetic_v<T>) {
    read_number(reader, value);
  } else if constexpr (kIsText<T>) {
    value = reader.text();
  } else if constexpr (std::is_enum_v<T>) {
    read_enumerator(reader, value);
  } else if constexpr (kIsOptional<T>) {
    value.reset();
    if (reader.word() == "none") return;
    reader = before;
    read_written(reader, value.emplace());
  } else if constexpr (kIsVector<T>) {
    read_vector(reader, value);
  } else if constexpr (is_nested<T>()) {
    read_struct(reader, value);
  } else {
    read_array(reader, value);
  }
}

/// Of an optional that holds the text "none", which stands for one without a value.
[[noreturn]] void refuse_none();

/// As a domain has it. An optional that holds a value is that value.
template <Searchable T>
Scalar as_scalar(const T& value) {
  if constexpr (std::constructible_from<Scalar, const T&>) {
    return Scalar(value);
  } else if constexpr (kIsOptional<T>) {
    if (!value) return Scalar("none");
    const auto scalar = as_scalar(*value);
    if (scalar == Scalar("none")) refuse_none();
    return scalar;
  } else {
    return Scalar(written(value));
  }
}

}  // namespace troupe::tune::detail
