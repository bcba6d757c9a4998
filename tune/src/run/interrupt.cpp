#include "run/interrupt.hpp"

#include <atomic>

#include <fmt/format.h>

#include <troupe/detail/signal_echo.hpp>
#include <troupe/tune/results.hpp>

namespace troupe::tune {
namespace {

// A handler can reach no other state. Lock-free, so that it may touch them.
std::atomic<bool> watched{false};
std::atomic<int> noted_signal{0};
troupe::detail::SignalEcho echo;
/// Of the watches that have ended; 0: none.
std::atomic<int> signal_before{0};
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  int none = 0;
  if (noted_signal.compare_exchange_strong(none, signal == SIGHUP ? SIGTERM : signal)) {
    echo.note(signal);
    return;
  }
  if (signal == SIGHUP || echo.is_echo(signal)) return;
  struct sigaction ends = {};
  ends.sa_handler = SIG_DFL;
  sigaction(signal, &ends, nullptr);
  ::raise(signal);
}

}  // namespace

InterruptWatch::InterruptWatch(bool hangup) {
  if (watched.exchange(true)) return;
  active_ = true;
  noted_signal = 0;
  echo.forget();
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
  sigaction(SIGHUP, nullptr, &before_hangup_);
  takes_hangup_ = hangup && before_hangup_.sa_handler != SIG_IGN;
  if (takes_hangup_) sigaction(SIGHUP, &action, nullptr);
}

InterruptWatch::~InterruptWatch() {
  if (!active_) return;
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  if (takes_hangup_) sigaction(SIGHUP, &before_hangup_, nullptr);
  if (const auto number = signal()) signal_before = *number;
  watched = false;
}

std::optional<int> InterruptWatch::signal() const {
  const int number = active_ ? noted_signal.load() : 0;
  return number == 0 ? std::nullopt : std::optional(number);
}

std::optional<std::string> InterruptWatch::noted() const {
  const auto noted = signal();
  if (!noted) return std::nullopt;
  return *noted == SIGTERM ? "ended by the user (SIGTERM)" : "ended by the user (SIGINT)";
}

Interrupted::Interrupted(int signal)
    : std::runtime_error(fmt::format(
          "tune: this search does not begin, since {} came during a search before it in this "
          "program. Start the program again; one that is to go on with other searches calls "
          "tune::clear_interrupt() first",
          signal == SIGTERM ? "SIGTERM" : "Ctrl-C (SIGINT)")),
      signal_{signal} {}

void clear_interrupt() { signal_before = 0; }

void refuse_after_interrupt() {
  if (const int number = signal_before) throw Interrupted(number);
}

}  // namespace troupe::tune
