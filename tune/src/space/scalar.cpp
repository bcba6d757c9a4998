#include <troupe/tune/scalar.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace troupe::tune {

void Scalar::refuse_too_large() {
  throw std::invalid_argument("an integer of a configuration is at most 9223372036854775807");
}

std::string_view kind_of(const Scalar& scalar) {
  constexpr std::array<std::string_view, 4> names{"real number", "integer", "truth value", "text"};
  return names[scalar.value().index()];
}

std::string to_string(double number) {
  if (std::isnan(number)) return "nan";  // to_chars keeps the sign of a nan
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

std::string to_string(const Scalar& scalar) {
  struct Printer {
    std::string operator()(double number) const { return to_string(number); }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Printer{}, scalar.value());
}

std::string to_string(const Configuration& configuration) {
  std::string text;
  for (const auto& [name, value] : configuration) {
    if (!text.empty()) text += ", ";
    text += name + "=" + to_string(value);
  }
  return text;
}

}  // namespace troupe::tune
