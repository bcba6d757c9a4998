#pragma once

#include <chrono>

namespace troupe::launch {

/// Seconds since 1970, by this machine's clock.
inline double now_in_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace troupe::launch
