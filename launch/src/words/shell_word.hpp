#pragma once

#include <string>

namespace troupe::launch {

/// `text` as a shell reads it as one word: for commands that a message names.
inline std::string shell_word(const std::string& text) {
  constexpr auto* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=";
  // zsh puts the path of a program in the place of "=NAME".
  const bool is_plain =
      !text.empty() && !text.starts_with('=') && text.find_first_not_of(plain) == std::string::npos;
  if (is_plain) return text;
  std::string word = "'";
  for (const char each : text) word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

}  // namespace troupe::launch
