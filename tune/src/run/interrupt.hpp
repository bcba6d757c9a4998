#pragma once

#include <optional>
#include <string>

#include <signal.h>

namespace troupe::tune {

/// While one lives, SIGINT and SIGTERM are noted instead of ending the program; a second one ends
/// it, unless it is an echo of the first (SignalEcho). One at a time in a process: a second
/// watch notes nothing. The handlers from before come back with its end, and
/// refuse_after_interrupt() knows then what was noted.
class InterruptWatch {
 public:
  /// `hangup`: a terminal that is closed counts as a first SIGTERM, and never as a second one: shells,
  /// the kernel and service managers send it behind others. Where SIGHUP is ignored (nohup), it stays
  /// so.
  explicit InterruptWatch(bool hangup = false);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  /// "ended by the user (SIGINT)", once it was.
  std::optional<std::string> noted() const;
  /// That was noted.
  std::optional<int> signal() const;

 private:
  bool active_ = false;
  bool takes_hangup_ = false;
  struct sigaction before_int_ = {};
  struct sigaction before_term_ = {};
  struct sigaction before_hangup_ = {};
};

/// Throws Interrupted where a watch that has ended had noted a signal, until clear_interrupt().
void refuse_after_interrupt();

}  // namespace troupe::tune
