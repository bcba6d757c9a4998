#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>

#include <troupe/troupe.hpp>

namespace troupe::bench {

/// The actor of the cases. It takes no CPU while it is alive, as the peer's.
struct Counter {
  int n = 0;
  int add(int x) { return n += x; }
  std::string text(std::size_t bytes) const { return std::string(bytes, 'x'); }
  int pid() const { return ::getpid(); }
  /// For ever.
  int waits() const { return ::pause(); }
  /// For a key that no rank of its gang sets.
  int waits_for_rank() const {
    return static_cast<int>(
        this_gang()->rendezvous().get("what nobody sets", std::chrono::minutes(2)).size());
  }
};

}  // namespace troupe::bench
