// Worker processes that cannot attach to the object store of their node, and callers that end while
// a result is written.
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "functions.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLarge = std::size_t{200} << 10;

[[maybe_unused]] void limit_address_space() {
  std::ifstream in("/proc/self/statm");
  rlim_t pages = 0;
  in >> pages;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * 4096 + (rlim_t{512} << 20);
  ::setrlimit(RLIMIT_AS, &limit);
}

/// Takes away what a process needs to map the store, and makes large results.
struct Confined {
  int without_address_space() {
    limit_address_space();
    return ::getpid();
  }
  int without_descriptors() {
    rlimit limit{256, 256};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
    return ::getpid();
  }
  std::string large(std::size_t bytes) const { return std::string(bytes, 'x'); }
  int pid() const { return ::getpid(); }
};

/// -> whether the gate has come to that within half a minute.
bool reaches(Actor<Counter> gate, int count) {
  const auto end = std::chrono::steady_clock::now() + kGuard;
  while (std::chrono::steady_clock::now() < end) {
    if (gate.call<&Counter::add>(0).get(kGuard) >= count) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

/// Makes results in memory that it keeps of what it has freed.
struct Slow {
  int warm_up(std::size_t bytes) {
    for (int i = 0; i < 3; ++i) put(std::string(bytes, 'w'));
    return ::getpid();
  }
  /// Begins once the gate is open; says in it that it has begun.
  std::string large(Actor<Counter> gate, std::size_t bytes) {
    gate.call<&Counter::add>(1).get(kGuard);
    return reaches(std::move(gate), 2) ? std::string(bytes, 'r') : "";
  }
  int pid() const { return ::getpid(); }
};

struct SlowCaller {
  int call(Actor<Slow> slow, Actor<Counter> gate, std::size_t bytes) {
    pending = slow.call<&Slow::large>(std::move(gate), bytes);
    return ::getpid();
  }
  Ref<std::string> pending;
};

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map terabytes

TEST_CASE("a process without address space for the store asks for it again, and its node lives on",
          "[runtime][session][store]") {
  auto cluster = init({.cpus = 2});
  auto confined = spawn<Confined>();
  const int pid = confined.call<&Confined::without_address_space>().get(kGuard);
  // Two times as long as it waits before it asks again.
  const auto end = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < end) {
    CHECK(confined.call<&Confined::large>(kLarge).get(kGuard).size() == kLarge);
    std::this_thread::sleep_for(50ms);
  }
  CHECK(confined.call<&Confined::pid>().get(kGuard) == pid);
  CHECK(spawn<Confined>().call<&Confined::large>(kLarge).get(kGuard).size() == kLarge);
}

#endif

TEST_CASE("a process without a free descriptor returns large values in messages",
          "[runtime][session][store]") {
#if defined(__SANITIZE_ADDRESS__)
  WARN(
      "skipped: the vptr check of this sanitizer build needs a free descriptor itself, and ends "
      "the process without");
  return;
#endif
  auto cluster = init({.cpus = 2});
  auto confined = spawn<Confined>();
  const int pid = confined.call<&Confined::without_descriptors>().get(kGuard);
  for (int i = 0; i < 3; ++i)
    CHECK(confined.call<&Confined::large>(kLarge).get(kGuard).size() == kLarge);
  CHECK(confined.call<&Confined::pid>().get(kGuard) == pid);
}

TEST_CASE("who writes a result for a caller that ends meanwhile lives on",
          "[runtime][session][store]") {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  auto cluster = init({.cpus = 4});
  auto slow = spawn<Slow>();
  const int pid = slow.call<&Slow::warm_up>(kBytes).get(kGuard);
  slow.call<&Slow::warm_up>(kBytes).get(kGuard);  // what was freed has come back by now
  auto gate = spawn<Counter>(0);
  auto caller = spawn<SlowCaller>();
  const int caller_pid = caller.call<&SlowCaller::call>(slow, gate, kBytes - 4096).get(kGuard);
  REQUIRE(reaches(gate, 1));
  ::kill(caller_pid, SIGKILL);
  // Its node knows.
  CHECK_THROWS_AS(caller.call<&SlowCaller::call>(slow, gate, kBytes).get(kGuard), ActorDied);
  gate.call<&Counter::add>(1).get(kGuard);
  CHECK(slow.call<&Slow::pid>().get(kGuard) == pid);
}
