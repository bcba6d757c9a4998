#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>

namespace troupe::bench {

/// The actor of the cases. It takes no CPU while it is alive, as the peer's.
struct Counter {
  int n = 0;
  int add(int x) { return n += x; }
  std::string text(std::size_t bytes) const { return std::string(bytes, 'x'); }
  int pid() const { return ::getpid(); }
};

}  // namespace troupe::bench
