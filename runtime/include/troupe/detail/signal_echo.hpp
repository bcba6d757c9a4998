#pragma once

#include <atomic>
#include <cstdint>

#include <time.h>

namespace troupe::detail {

/// Two signals of one kind within a tenth of a second are one: timeout(1) signals its child and then
/// the group of both. For a handler of signals: everything here may be called in one. Any thread.
class SignalEcho {
 public:
  /// After a first signal: whether one that comes now is its echo. The thread that the first came to
  /// may not have noted it yet.
  bool is_echo(int signal) const {
    const auto noted = signal_.load();
    const auto at = at_.load();
    return (noted == 0 || noted == signal) && (at == 0 || now_ns() - at < kEchoNs);
  }
  void note(int signal) {
    at_ = 0;
    signal_ = signal;
    at_ = now_ns();
  }
  void forget() {
    signal_ = 0;
    at_ = 0;
  }

 private:
  static constexpr std::int64_t kEchoNs = 100'000'000;
  static std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  std::atomic<int> signal_{0};
  std::atomic<std::int64_t> at_{0};
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
};

}  // namespace troupe::detail
