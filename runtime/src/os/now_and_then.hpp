#pragma once

namespace troupe::os {

/// In builds with TROUPE_CHECKS (the presets dev, asan and tsan) calls `check`, which walks a whole
/// state and throws or aborts where an invariant is broken, at every kEvents-th event; elsewhere it
/// does nothing.
class NowAndThen {
 public:
  static constexpr unsigned kEvents = 64;

  template <class Check>
  void on_event([[maybe_unused]] Check&& check) {
#ifdef TROUPE_CHECKS
    if (++events_ % kEvents == 0) check();
#endif
  }

 private:
  [[maybe_unused]] unsigned events_ = 0;
};

}  // namespace troupe::os
