// What a worker process costs its machine in memory.
#include <fstream>
#include <string>
#include <vector>

#include <sys/types.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <troupe/troupe.hpp>

#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int kProcesses = 50;
constexpr long kMostKib = 132;

struct Idle {
  int pid() const { return ::getpid(); }
};

/// KiB of memory that only this process has.
long private_kib(pid_t pid) {
  std::ifstream memory("/proc/" + std::to_string(pid) + "/smaps_rollup");
  long sum = 0;
  for (std::string line; std::getline(memory, line);) {
    if (line.starts_with("Private_")) sum += std::stol(line.substr(line.find(':') + 1));
  }
  return sum;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which have memory of their own
TEST_CASE("a worker process that was called has at most 132 KiB of memory of its own",
          "[runtime][session][memory]") {
  const auto cluster = init({.cpus = 2});
  std::vector<Actor<Idle>> actors;
  std::vector<Ref<int>> pids;
  for (int i = 0; i < kProcesses; ++i) {
    actors.push_back(spawn<Idle>());
    pids.push_back(actors.back().call<&Idle::pid>());
  }
  long sum = 0;
  for (const auto& pid : pids) {
    const auto kib = private_kib(pid.get(kGuard));
    REQUIRE(kib > 0);
    sum += kib;
  }
  INFO("mean of " << kProcesses << " processes, in KiB: " << sum / kProcesses);
  CHECK(sum <= kMostKib * kProcesses);
}
#endif
