// Who lends its CPU while it waits, and who is told that it cannot wait.
#include <chrono>
#include <csignal>
#include <future>
#include <stdexcept>
#include <string>

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

TEST_CASE("the function of a trainable lends the only CPU to the task that it waits for",
          "[runtime][session][cpus]") {
  const auto cluster = init({.cpus = 1});
  const auto ranks =
      gang<TrainableWorker<waits_for_many>>({.size = 1}, Config{.value = 3}, RunInfo{});
  TrialRun<waits_for_many> run(ranks);
  run.wait();
  CHECK(run.result() == 5 * 9);
}

TEST_CASE("ranks that share the only CPU lend their parts of it to the tasks that they wait for",
          "[runtime][session][cpus]") {
  const auto cluster = init({.cpus = 1});
  const auto ranks = gang<TrainableWorker<waits_for_half>>({.size = 2, .each = {.cpus = 0.5}},
                                                           Config{.value = 4}, RunInfo{});
  TrialRun<waits_for_half> run(ranks);
  run.wait();
  CHECK(run.result() == 16);
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
