#pragma once

#include <chrono>
#include <thread>

#include "guard.hpp"

namespace troupe::test {

/// Asks `done` each millisecond until it is true, or the time is over. -> done()
template <class Done>
bool eventually(Done done, std::chrono::milliseconds timeout = kGuard) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return done();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace troupe::test
