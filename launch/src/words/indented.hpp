#pragma once

#include <string>
#include <string_view>

namespace troupe::launch {

/// The lines of `text`, each behind a line end and four spaces: for the end of a message.
inline std::string indented(std::string_view text) {
  std::string lines;
  for (;;) {
    const auto end = text.find('\n');
    lines += "\n    ";
    lines += text.substr(0, end);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

}  // namespace troupe::launch
