#include "run/signals.hpp"

#include <atomic>
#include <cstddef>
#include <iterator>

#include <troupe/detail/signal_echo.hpp>

namespace troupe::launch {
namespace {

constexpr int kCounted[] = {SIGINT, SIGTERM, SIGHUP};

// A handler can reach no other state. Lock-free, so that it may touch them.
std::atomic<int> first_signal{0};
std::atomic<int> signals{0};
detail::SignalEcho echo;
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, signal) && echo.is_echo(signal)) return;
  echo.note(signal);
  ++signals;
}

}  // namespace

Signals::Signals() {
  first_signal = 0;
  signals = 0;
  echo.forget();
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < std::size(kCounted); ++i) {
    ::sigaction(kCounted[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN)  // as nohup(1) leaves it
      ::sigaction(kCounted[i], &action, nullptr);
  }
}

Signals::~Signals() {
  for (std::size_t i = 0; i < std::size(kCounted); ++i)
    ::sigaction(kCounted[i], &before_[i], nullptr);
}

int Signals::first() { return first_signal; }
int Signals::count() { return signals; }

}  // namespace troupe::launch
