#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace troupe::node {

/// How often the kernel has ended processes because memory ran out (its OOM killer), from the
/// counters that it keeps, the narrower ones first. A signal does not say who sent it; these say
/// whether it may have been the kernel. Lives in the node, on its loop.
class MemoryKills {
 public:
  using Clock = std::chrono::steady_clock;
  /// A kill that was counted so long ago explains no death that is seen now.
  static constexpr std::chrono::seconds kRecent{10};

  /// A file of lines "NAME NUMBER".
  struct Counter {
    std::string file;
    std::string name;
    std::string means;  ///< "the kernel ...": what a rise says, and how sure that is
  };

  /// Of this machine, and of the cgroup that this process is in.
  MemoryKills();
  explicit MemoryKills(std::vector<Counter> counters);

  /// Reads the counters; to be called every second or so.
  void look(Clock::time_point now);
  /// Of a process that was killed by SIGKILL, and not by its node: what a counter says to that.
  /// Each kill explains one death. Empty: no counter has risen.
  std::string explain(Clock::time_point now);

 private:
  struct Watched {
    Counter counter;
    std::uint64_t last = 0;
    std::deque<Clock::time_point> kills;  // recent ones that explain no death yet
  };
  std::vector<Watched> watched_;
};

}  // namespace troupe::node
