#include "text/names.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

constexpr std::string_view kMark = "\xef\xbf\xbd";  // U+FFFD, the replacement character

bool is_within(char c, unsigned low, unsigned high) {
  const unsigned byte = static_cast<unsigned char>(c);
  return low <= byte && byte <= high;
}

/// How many bytes the character has that begins the text, by the table of RFC 3629; 0: none begins
/// there.
std::size_t character_size(std::string_view text) {
  const unsigned first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xc2    ? 0
                           : first < 0xe0  ? 2
                           : first < 0xf0  ? 3
                           : first <= 0xf4 ? 4
                                           : 0;
  if (size == 0 || text.size() < size) return 0;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (!is_within(text[1], low, high)) return 0;
  const auto others = text.substr(2, size - 2);
  return std::ranges::all_of(others, [](char c) { return is_within(c, 0x80, 0xbf); }) ? size : 0;
}

/// -1: it is no digit of name_in_utf8().
int digit_value(char digit) {
  if ('0' <= digit && digit <= '9') return digit - '0';
  return 'A' <= digit && digit <= 'F' ? digit - 'A' + 10 : -1;
}

bool is_marked_byte(std::string_view text) {
  return text.starts_with(kMark) && text.size() >= kMark.size() + 2 &&
         digit_value(text[kMark.size()]) >= 0 && digit_value(text[kMark.size() + 1]) >= 0;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return is_within(c, 0, 0x7f); });
}

}  // namespace

std::string name_in_utf8(std::string_view name) {
  if (is_ascii(name)) return std::string(name);
  std::string text;
  while (!name.empty()) {
    const auto size = character_size(name);
    const auto part = name.substr(0, std::max<std::size_t>(1, size));
    if (size > 0 && !is_marked_byte(name)) {
      text += part;
    } else {
      for (const char c : part)
        text += fmt::format("{}{:02X}", kMark, static_cast<unsigned char>(c));
    }
    name.remove_prefix(part.size());
  }
  return text;
}

std::string name_from_utf8(std::string_view text) {
  std::string name;
  while (!text.empty()) {
    if (is_marked_byte(text)) {
      const int byte = digit_value(text[kMark.size()]) * 16 + digit_value(text[kMark.size() + 1]);
      name += static_cast<char>(static_cast<unsigned char>(byte));
      text.remove_prefix(kMark.size() + 2);
    } else {
      name += text.front();
      text.remove_prefix(1);
    }
  }
  return name;
}

}  // namespace troupe::tune
