// Trials that start tasks and wait for them, where no CPU is left but their own.
#include <troupe/tune.hpp>

#include <future>

#include <catch2/catch.hpp>

#include <troupe/troupe.hpp>

#include "guard.hpp"

namespace nested_test {

using namespace troupe;
using troupe::test::kGuard;

namespace {

struct Config {
  int index = 0;
};

int square(int value) { return value * value; }

void waits_for_a_task(tune::Context& ctx, const Config& config) {
  ctx.report({{"loss", task<square>(config.index).get(kGuard)}});
}

tune::Results<Config> search(bool in_process) {
  return tune::run<waits_for_a_task>({.space = {{"index", tune::grid({2, 3})}},
                                      .metric = "loss",
                                      .show = tune::Show::None,
                                      .in_process = in_process});
}

/// Searches within a task, whose trials run on a thread of the same process, or each in a gang.
double best_of_search() { return search(true).best().value(); }
double best_of_gangs() { return search(false).best().value(); }
int best_of_gangs_and_square() {
  const auto best = static_cast<int>(best_of_gangs());
  return task<square>(best).get(kGuard);  // the CPU is lent anew
}

/// As above, where the search is on a thread of the task's own that the task waits for.
double best_on_own_thread(bool in_process) {
  const auto searched = [=] { return search(in_process).best().value(); };
  return std::async(std::launch::async, searched).get();
}

}  // namespace

TEST_CASE("a trial that holds the only CPU lends it to the task that it waits for",
          "[tune][cpus][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 1});
  const auto results = search(false);
  REQUIRE(results.trials().size() == 2);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ' ' << trial.error);
    CHECK(trial.status == tune::Status::Terminated);
    CHECK(trial.best == config.index * config.index);
  }
}

TEST_CASE("a trial in the process of a task lends the task's CPU to the task that it waits for",
          "[tune][cpus][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 1});
  CHECK(task<best_of_search>().get(2 * kGuard) == 4);
}

TEST_CASE("a search in a task lends the task's CPU to its trials, and has it again afterwards",
          "[tune][cpus][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 1});
  CHECK(task<best_of_gangs_and_square>().get(3 * kGuard) == 16);
}

TEST_CASE("a search on a thread of a task's own lends the task's CPU to its trials",
          "[tune][cpus][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 1});
  CHECK(task<best_on_own_thread>(true).get(2 * kGuard) == 4);
  CHECK(task<best_on_own_thread>(false).get(3 * kGuard) == 4);
}

}  // namespace nested_test
