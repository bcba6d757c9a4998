#include "text/json_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

#include "text/json.hpp"
#include "text/names.hpp"

namespace troupe::tune {

void JsonLine::begin(std::string_view key) {
  if (line_.size() > 1) line_ += ',';
  append(key);
  line_ += ':';
}

void JsonLine::append(double number) {
  if (!std::isfinite(number)) return append(std::string_view(to_string(number)));
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string_view digits(text.data(), end);
  line_ += digits;
  // So that a reader keeps it apart from an integer.
  if (digits.find_first_of(".e") == std::string_view::npos) line_ += ".0";
}

void JsonLine::append(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; };
  if (!std::ranges::all_of(text, is_plain)) {
    line_ += dump(Json(text));
    return;
  }
  line_ += '"';
  line_ += text;
  line_ += '"';
}

void JsonLine::append(const Scalar& scalar) {
  const auto& value = scalar.value();
  if (const auto* real = std::get_if<double>(&value)) return append(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return append(std::string_view(*text));
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    line_ += std::to_string(*whole);
  } else {
    line_ += std::get<bool>(value) ? "true" : "false";
  }
}

JsonLine& JsonLine::add(std::string_view key, double number) {
  begin(key);
  append(number);
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, std::string_view text) {
  begin(key);
  append(text);
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, const Configuration& configuration) {
  JsonLine inner;
  for (const auto& [name, value] : configuration) {
    inner.begin(name);
    inner.append(value);
  }
  return add_json(key, inner.end());
}

JsonLine& JsonLine::add(std::string_view key, const Metrics& metrics) {
  JsonLine inner;
  for (const auto& metric : metrics) inner.add(name_in_utf8(metric.name), metric.value);
  return add_json(key, inner.end());
}

JsonLine& JsonLine::add_json(std::string_view key, std::string_view json) {
  begin(key);
  line_ += json;
  return *this;
}

std::string JsonLine::end() {
  line_ += '}';
  return std::move(line_);
}

}  // namespace troupe::tune
