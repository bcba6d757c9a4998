// Who lends its CPU while it waits, and who is told that it cannot wait.
#include <chrono>
#include <csignal>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/detail/trainable/trial_run.hpp>
#include <troupe/troupe.hpp>

#include "guard.hpp"

using namespace troupe;
using namespace troupe::detail;
using namespace troupe::test;

namespace {

struct Context {
  explicit Context(Member& m) : member(m) {}
  Member& member;
};
struct Config {
  int value = 0;
};

int square(int value) { return value * value; }

/// In the thread of the function, which is none that runs calls.
int waits_for_a_task(Context&, const Config& config) {
  return task<square>(config.value).get(kGuard);
}
int waits_for_half(Context&, const Config& config) {
  return with({.cpus = 0.5}).task<square>(config.value).get(kGuard);
}

/// As above, again and again, so that the CPU goes to and fro.
int waits_for_many(Context& context, const Config& config) {
  int sum = 0;
  for (int i = 0; i < 5; ++i) sum += waits_for_a_task(context, config);
  return sum;
}

/// What `waits` returns, on a thread of the program's own that this one waits for.
template <class Waits>
int on_own_thread(Waits waits) {
  return std::async(std::launch::async, waits).get();
}
int squares_on_own_thread(int value) {
  return on_own_thread([&] { return task<square>(value).get(kGuard); });
}
/// Its thread waits for what has begun before the thread did, by troupe::wait().
int waits_on_own_thread(int value) {
  return on_own_thread([&] {
    const std::vector<Ref<int>> squares{task<square>(value), task<square>(value + 1)};
    return static_cast<int>(wait(squares, squares.size(), kGuard).ready.size());
  });
}
/// Two threads at a time, and then the thread of the call itself.
int squares_on_two_threads(int value) {
  const auto waits = [=] { return task<square>(value).get(kGuard); };
  auto first = std::async(std::launch::async, waits);
  auto second = std::async(std::launch::async, waits);
  const int sum = first.get() + second.get();
  return sum + waits();
}
int half_on_own_thread(Context& context, const Config& config) {
  return on_own_thread([&] { return waits_for_half(context, config); });
}
int many_on_own_threads(Context& context, const Config& config) {
  int sum = 0;
  for (int i = 0; i < 5; ++i)
    sum += on_own_thread([&] { return waits_for_a_task(context, config); });
  return sum;
}

/// An actor whose thread waits while no method runs.
struct Prefetches {
  void begin(int value) {
    squared = std::async(std::launch::async, [=] { return task<square>(value).get(kGuard); });
  }
  int square_in(int milliseconds) {
    const auto came = squared.wait_for(std::chrono::milliseconds(milliseconds));
    return came == std::future_status::ready ? squared.get() : 0;
  }
  std::future<int> squared;
};

/// What rank 0 returns of `ranks` that share the only CPU of a cluster.
template <auto rank>
int result_on_one_cpu(int ranks, const Config& config) {
  const auto cluster = init({.cpus = 1});
  const auto workers = gang<TrainableWorker<rank>>({.size = ranks, .each = {.cpus = 1.0 / ranks}},
                                                   config, RunInfo{});
  TrialRun<rank> run(workers);
  run.wait();
  return run.result();
}

struct Listener {
  /// What the wait of a listener for a task comes to, which the end of rank 1 calls.
  std::string listens() {
    std::promise<std::string> told;
    auto text = told.get_future();
    const auto throws =
        this_gang()->on_broken([] { throw std::runtime_error("thrown by a listener"); });
    const auto waits = this_gang()->on_broken([&told] {
      try {
        task<square>(3).get(kGuard);
        told.set_value("it waited");
      } catch (const std::exception& error) {
        told.set_value(error.what());
      }
    });
    this_gang()->rendezvous().set("listens", "");
    return text.wait_for(kGuard) == std::future_status::ready ? text.get() : "it was not called";
  }
  void dies() {
    this_gang()->rendezvous().get("listens", kGuard);
    std::raise(SIGKILL);
  }
};

}  // namespace

TEST_CASE("ranks that share the only CPU lend their parts of it to the tasks that they wait for",
          "[runtime][session][cpus]") {
  CHECK(result_on_one_cpu<waits_for_many>(1, {.value = 3}) == 5 * 9);
  CHECK(result_on_one_cpu<waits_for_half>(2, {.value = 4}) == 16);
}

TEST_CASE("ranks that share the only CPU lend it to what threads of their own wait for",
          "[runtime][session][cpus]") {
  CHECK(result_on_one_cpu<many_on_own_threads>(1, {.value = 3}) == 5 * 9);
  CHECK(result_on_one_cpu<half_on_own_thread>(2, {.value = 4}) == 16);
}

TEST_CASE("a task lends the only CPU to the task that a thread of its own waits for",
          "[runtime][session][cpus]") {
  const auto cluster = init({.cpus = 1});
  CHECK(task<squares_on_own_thread>(3).get(2 * kGuard) == 9);
  CHECK(task<waits_on_own_thread>(3).get(2 * kGuard) == 2);
  CHECK(task<squares_on_two_threads>(3).get(3 * kGuard) == 27);
}

TEST_CASE("an actor lends the only CPU to the task that a thread of its own waits for",
          "[runtime][session][cpus]") {
  const auto cluster = init({.cpus = 1});
  const auto actor = with({.cpus = 1}).spawn<Prefetches>();
  actor.call<&Prefetches::begin>(5).get(kGuard);
  int squared = 0;
  for (const auto end = std::chrono::steady_clock::now() + kGuard;
       squared == 0 && std::chrono::steady_clock::now() < end;)
    squared = actor.call<&Prefetches::square_in>(100).get(kGuard);
  CHECK(squared == 25);
}

TEST_CASE("a wait in what is given to on_broken is refused at once, and an exception ends nothing",
          "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 2});
  const auto ranks = gang<Listener>({.size = 2});
  const auto told = ranks.rank(0).call<&Listener::listens>();
  const auto died = ranks.rank(1).call<&Listener::dies>();
  CHECK_THAT(told.get(kGuard), Catch::Contains("GangContext::on_broken") &&
                                   Catch::Contains("wake a thread of the program"));
  CHECK_THROWS_AS(died.get(kGuard), ActorDied);
}
