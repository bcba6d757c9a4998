#pragma once

#include <signal.h>

namespace troupe::launch {

/// While it lives, SIGINT, SIGTERM and SIGHUP are counted instead of ending this process. One at a
/// time.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  static int first();  ///< the first that came; 0: none
  static int count();  ///< how many came, without echoes (SignalEcho)

 private:
  struct sigaction before_[3] = {};
};

}  // namespace troupe::launch
