#include "text/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

std::string short_number(double number) {
  number += 0.0;  // of -0 this makes 0
  auto rounded = fmt::format("{:.4g}", number);
  auto exact = to_string(number);
  return exact.size() <= rounded.size() ? exact : rounded;
}

std::string short_text(const Scalar& value) {
  const auto* real = std::get_if<double>(&value.value());
  return real ? short_number(*real) : to_string(value);
}

std::string short_text(const Configuration& configuration) {
  std::string text;
  for (const auto& [name, value] : configuration)
    text += (text.empty() ? "" : ", ") + name + "=" + short_text(value);
  return text;
}

std::string names_of(const Metrics& metrics) {
  std::string names;
  for (const auto& metric : metrics) names += (names.empty() ? "" : ", ") + metric.name;
  return names.empty() ? "nothing" : names;
}

std::string short_time(Seconds time) {
  const auto seconds = time.count();
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string exact_time(Seconds time) {
  const auto milliseconds = std::llround(1000 * time.count());
  if (time.count() >= 99.95 || milliseconds % 100 == 0) return short_time(time);
  return fmt::format("{} s", static_cast<double>(milliseconds) / 1000);
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::size_t width_of(std::string_view utf8) {
  std::size_t width = 0;
  for (char c : utf8) width += starts_code_point(c) ? 1 : 0;
  return width;
}

std::string clipped(std::string_view utf8, std::size_t width) {
  constexpr std::string_view mark = "...";
  const bool fits = width_of(utf8) <= width;
  const auto kept = fits ? width : width - std::min(width, mark.size());
  std::string text;
  std::size_t columns = 0;
  for (char c : utf8) {
    if (starts_code_point(c) && columns++ == kept) break;
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return fits ? text : text + std::string(mark.substr(0, width));
}

std::string padded(std::string_view utf8, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(utf8)), ' ');
  return right ? space + std::string(utf8) : std::string(utf8) + space;
}

std::string coloured(std::string_view text, Colour colour, bool enabled) {
  constexpr std::array<int, 7> codes{0, 1, 2, 31, 32, 33, 36};
  if (!enabled || colour == Colour::Plain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
}

}  // namespace troupe::tune
