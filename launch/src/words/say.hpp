#pragma once

#include <cstdio>
#include <string>

namespace troupe::launch {

/// On standard error. What cannot be written there is lost, and changes nothing else: least of all
/// the exit status.
inline void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::clearerr(stderr);
}

}  // namespace troupe::launch
