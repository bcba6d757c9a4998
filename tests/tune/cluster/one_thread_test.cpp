// How a sweep drives its gangs: on one thread, at once, and without losing its place in the
// cluster's queue.
#include <troupe/tune.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/cluster.hpp>
#include <troupe/task.hpp>

#include "guard.hpp"
#include "support/temporary_folder.hpp"

namespace one_thread_test {

using namespace troupe;
using namespace std::chrono_literals;
using troupe::test::kGuard;
namespace fs = std::filesystem;

namespace {

struct Config {
  double lr = 0.1;
  int together = 1;
  std::string folder = {};
};

/// Ends only if `together` trials run at the same time, each of which makes a folder.
void meets_others(tune::Context& ctx, const Config& config) {
  fs::create_directory(config.folder + "/" + std::to_string(getpid()));
  const auto here = [&] {
    return std::distance(fs::directory_iterator(config.folder), fs::directory_iterator());
  };
  const auto deadline = std::chrono::steady_clock::now() + kGuard;
  while (here() < config.together) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("alone");
    usleep(2'000);
  }
  for (int step = 0; step < 20; ++step) ctx.report({{"accuracy", step}});
}

/// One rank dies; the other one is busy, and reports no more.
void dies_beside_a_busy_rank(tune::Context& ctx, const Config&) {
  ctx.report({{"accuracy", 1}});
  if (ctx.rank() == 1) std::raise(SIGKILL);
  for (;;) pause();
}

void reports_often(tune::Context& ctx, const Config&) {
  for (int step = 0; step < 60; ++step) {
    usleep(3'000);
    ctx.report({{"accuracy", step}});
  }
}

void reports_once(tune::Context& ctx, const Config& config) {
  ctx.report({{"accuracy", config.lr}});
}

template <auto fn>
auto sweep(tune::Options<Config> options) {
  options.metric = "accuracy";
  options.mode = tune::Max;
  options.show = tune::Show::None;
  return tune::run<fn>(std::move(options));
}

/// -> seconds
double sweep_in_a_task() {
  const auto results = sweep<reports_often>({.space = {}, .trials = 4});
  for (const auto& result : results.trials()) {
    if (result.trial.status != tune::Status::Terminated)
      throw std::runtime_error(result.trial.error);
  }
  return std::chrono::duration<double>(results.duration()).count();
}

std::ptrdiff_t threads_here() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

void nap() { std::this_thread::sleep_for(20ms); }

}  // namespace

TEST_CASE("a sweep makes no thread for its gangs", "[tune][cluster][threads]") {
  tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 8});
  std::atomic<std::ptrdiff_t> most = 0;
  const auto before = threads_here() + 1;  // with the one that counts
  {
    std::jthread counting([&](std::stop_token over) {
      while (!over.stop_requested()) {
        most = std::max(most.load(), threads_here());
        usleep(500);
      }
    });
    const auto results = sweep<meets_others>(
        {.space = {}, .trials = 8, .config = {.together = 8, .folder = folder.path().string()}});
    for (const auto& result : results.trials()) CHECK(result.trial.error == "");
  }
  CHECK(most >= before);
  CHECK(most <= before + 1);  // the runtime may make one of its own meanwhile
}

TEST_CASE("a sweep hears at once that a gang is broken, whatever its other ranks do",
          "[tune][cluster][failure]") {
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results =
      sweep<dies_beside_a_busy_rank>({.space = {}, .trials = 4, .each = {.workers = 2}});
  for (const auto& result : results.trials()) {
    CHECK(result.trial.status == tune::Status::Errored);
    CHECK_THAT(result.trial.error, Catch::Contains("rank 1") && Catch::Contains("signal 9"));
    CHECK(result.trial.ended - result.trial.started < kGuard);
  }
}

TEST_CASE("a sweep in a task keeps its pace in a full cluster", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  // 240 reports; half a second each, if the task gave its CPU back for each.
  CHECK(std::chrono::duration<double>(task<sweep_in_a_task>().get()) < kGuard);
}

TEST_CASE("a gang of a sweep gets its turn beside a stream of small tasks", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 4});
  std::atomic<std::size_t> done = 0;
  std::jthread stream([&](std::stop_token over) {
    std::vector<Ref<void>> tasks;
    while (!over.stop_requested()) {
      while (tasks.size() < 16) tasks.push_back(task<nap>());
      auto waited = wait(tasks, 1, 1s);
      done += waited.ready.size();
      tasks = std::move(waited.unready);
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + kGuard;
  while (done < 40 && std::chrono::steady_clock::now() < deadline) usleep(2'000);
  REQUIRE(done >= 40);
  const auto results = sweep<reports_once>(
      {.space = {}, .trials = 1, .each = {.workers = 4}, .time_budget = kGuard});
  CHECK(results.ended_early() == "");
  CHECK(results.trials()[0].trial.status == tune::Status::Terminated);
}

}  // namespace one_thread_test
