// Copies of a driver that its own code forks: they are in no cluster, and take nothing from it.
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include <sys/wait.h>
#include <catch2/catch.hpp>

#include "functions.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// -> the exit code of a fork of this process that does `what`; 99 where it threw.
int in_a_copy(const std::function<int()>& what) {
  const pid_t copy = ::fork();
  if (copy == 0) {
    int code = 99;
    try {
      code = what();
    } catch (...) {
    }
    std::_Exit(code);
  }
  int status = 0;
  while (::waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Why a copy of this process can not allocate, or "". Where another thread of the process stores the
/// stack of an allocation just then, the copy waits for ever for the lock that this thread has.
const char* why_copies_hang() {
#if defined(__SANITIZE_ADDRESS__)
  return "skipped: AddressSanitizer's allocator may be locked for ever in a copy of a process with "
         "threads";
#else
  return "";
#endif
}

/// Why a copy of this process can not be in a cluster, or "".
const char* why_copies_have_no_threads() {
#if defined(__SANITIZE_THREAD__)
  return "skipped: ThreadSanitizer supports no new threads in a copy of a process that had some";
#else
  return why_copies_hang();
#endif
}

/// Prints `why` where there is a reason to skip a test. -> whether there is.
bool is_skipped(const std::string& why) {
  if (why.empty()) return false;
  WARN(why);
  return true;
}

template <class Call>
bool is_refused_as_a_copy(Call call) {
  try {
    call();
  } catch (const Refused& refused) {
    return std::string(refused.what()).find("was forked by one that is in a cluster") !=
           std::string::npos;
  }
  return false;
}

int returns_twice(int milliseconds) {
  if (::fork() == 0) return -1;
  return sleeps(milliseconds) == milliseconds ? 1 : 0;
}
struct Forker {
  int call(int milliseconds) { return returns_twice(milliseconds); }
  int count() { return ++calls; }
  int calls = 0;
};

}  // namespace

TEST_CASE("a copy that user code forks in a worker process answers no call",
          "[runtime][session][fork]") {
  const auto cluster = init({.cpus = 2});
  const auto forker = spawn<Forker>();
  for (int i = 0; i < 2'000; ++i) forker.call<&Forker::count>().get(kGuard);  // there are rings now
  for (int i = 0; i < 2'000; ++i) task<twice>(i).get(kGuard);
  for (int i = 0; i < 5; ++i) {
    CHECK(task<returns_twice>(20).get(kGuard) == 1);
    CHECK(forker.call<&Forker::call>(20).get(kGuard) == 1);
  }
  CHECK(forker.call<&Forker::count>().get(kGuard) == 2'001);
}

TEST_CASE("a forked copy of a driver ends nothing of its cluster", "[runtime][session][fork]") {
  if (is_skipped(why_copies_hang())) return;
  std::optional<Cluster> cluster(init({.cpus = 2}));
  auto counter = std::make_optional(spawn<Counter>(0));
  const auto value = put(std::string(1'000'000, 'x'));
  REQUIRE(counter->call<&Counter::add>(1).get(kGuard) == 1);
  // As where it returns from main: what it has of the cluster is destroyed.
  CHECK(in_a_copy([&] {
          counter.reset();
          cluster.reset();
          return 7;
        }) == 7);
  CHECK(counter->call<&Counter::add>(1).get(kGuard) == 2);
  CHECK(task<twice>(4).get(kGuard) == 8);
  CHECK(task<length>(value).get(kGuard) == 1'000'000);
}

TEST_CASE("a forked copy of a driver cancels nothing of it", "[runtime][session][fork]") {
  if (is_skipped(why_copies_hang())) return;
  const auto cluster = init({.cpus = 1});
  const auto counter = spawn<Counter>(0);
  for (int i = 0; i < 3'000; ++i)
    counter.call<&Counter::add>(1).get(kGuard);  // there is a ring now
  const auto busy = counter.call<&Counter::sleep>(300);
  const auto behind = counter.call<&Counter::add>(1);
  CHECK(in_a_copy([&] {
          behind.cancel();
          return 7;
        }) == 7);
  CHECK(behind.get(kGuard) == 3'001);
  CHECK(busy.get(kGuard) == 300);
}

TEST_CASE("a forked copy of a driver is told that it is in no cluster",
          "[runtime][session][fork]") {
  if (is_skipped(why_copies_hang())) return;
  const auto cluster = init({.cpus = 2});
  const auto counter = spawn<Counter>(0);
  const auto pending = task<sleeps>(50);
  REQUIRE(counter.call<&Counter::add>(1).get(kGuard) == 1);
  CHECK(in_a_copy([&] {
          const bool refused = is_refused_as_a_copy([] { task<twice>(1).get(kGuard); }) &&
                               is_refused_as_a_copy([] { spawn<Counter>(0); }) &&
                               is_refused_as_a_copy([&] { counter.call<&Counter::add>(1); }) &&
                               is_refused_as_a_copy([&] { pending.get(kGuard); });
          CHECK_THROWS_AS(cluster.status_json(), Refused);
          return refused ? 7 : 1;
        }) == 7);
  CHECK(pending.get(kGuard) == 50);
}

TEST_CASE("a forked copy of a driver may be in a cluster of its own", "[runtime][session][fork]") {
  if (is_skipped(why_copies_have_no_threads())) return;
  const auto cluster = init({.cpus = 1});
  CHECK(in_a_copy([&] {
          const auto own = init({.cpus = 1});
          return task<twice>(3).get(kGuard) == 6 ? 7 : 2;
        }) == 7);
  CHECK(task<twice>(4).get(kGuard) == 8);
}
