#pragma once

#include <optional>
#include <string>

#include <signal.h>

namespace troupe::tune {

/// While one lives, SIGINT and SIGTERM are noted instead of ending the program; a second one ends
/// it. One at a time in a process: a second watch notes nothing. The handlers from before come back
/// with its end.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// "ended by the user (SIGINT)", once it was.
  std::optional<std::string> noted() const;

 private:
  bool active_ = false;
  struct sigaction before_int_ = {};
  struct sigaction before_term_ = {};
};

}  // namespace troupe::tune
