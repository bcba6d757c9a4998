#include <troupe/tune.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/cluster.hpp>

#include "guard.hpp"
#include "support/temporary_folder.hpp"

namespace sweep_test {

using namespace troupe;
using namespace std::chrono_literals;
using troupe::test::kGuard;

namespace {

struct Config {
  double lr = 0.1;
  int index = 0;
  int steps = 9;
  std::string folder;
};

void train(tune::Context& ctx, const Config& config) {
  for (int step = 1; step <= config.steps; ++step) {
    const auto verdict =
        ctx.report({{"accuracy", config.lr * (1 - 1.0 / (1 + step))}, {"ranks", ctx.size()}});
    if (verdict == Verdict::Stop) return;
  }
}

/// Ends only if another trial runs at the same time: each puts a file down and waits for the
/// other's.
void meets_another(tune::Context& ctx, const Config& config) {
  const auto at = [&](int index) { return config.folder + "/" + std::to_string(index); };
  if (ctx.rank() == 0) std::filesystem::create_directory(at(config.index));
  const auto deadline = std::chrono::steady_clock::now() + kGuard;
  while (!std::filesystem::exists(at(1 - config.index))) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("alone");
    usleep(2'000);
  }
  ctx.report({{"accuracy", 1}});
}

/// The last rank of the trial with index 1 is killed; the others go on.
void loses_a_rank(tune::Context& ctx, const Config& config) {
  ctx.report({{"accuracy", 0.1}});
  if (config.index == 1 && ctx.rank() == ctx.size() - 1) std::raise(SIGKILL);
  ctx.report({{"accuracy", 0.2 + config.index}});
}

/// The first attempt fails after a checkpoint; the second says where it went on from.
void fails_once(tune::Context& ctx, const Config&) {
  if (ctx.restore_from().empty()) {
    if (ctx.rank() == 0) std::filesystem::create_directories(ctx.storage() / "step-1");
    ctx.report({{"accuracy", 0.5}}, ctx.storage() / "step-1");
    throw std::runtime_error("a fault of the first attempt");
  }
  const bool there = std::filesystem::is_directory(ctx.restore_from());
  ctx.report({{"accuracy", there ? 0.9 : 0.0}});
}

/// A rank of the first attempt is killed while it is told its configuration, before the function
/// begins.
struct Fragile {
  std::string folder = {};
  double lr = 0.5;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(folder, lr);
    if (Archive::is_loading::value && mkdir((folder + "/killed").c_str(), 0755) == 0)
      std::raise(SIGKILL);
  }
};

void trains_after_all(tune::Context& ctx, const Fragile& config) {
  ctx.report({{"accuracy", config.lr}});
}

/// The process ends by itself before it reports.
void exits(tune::Context&, const Config&) { _exit(7); }

void throws(tune::Context& ctx, const Config& config) {
  if (config.index == 1) throw std::out_of_range("index 1 is bad");
  ctx.report({{"accuracy", config.lr}});
}

void never_reports_again(tune::Context& ctx, const Config& config) {
  ctx.report({{"accuracy", 0.5}});
  if (!config.folder.empty() && ctx.rank() == 0)
    std::filesystem::create_directory(config.folder + "/reported");
  for (;;) pause();
}

/// After its stop one rank throws, and the other one never returns.
void one_stays(tune::Context& ctx, const Config&) {
  ctx.report({{"accuracy", 0.5}});
  if (ctx.rank() == 1) throw std::runtime_error("it was on its way out");
  for (;;) pause();
}

void last_rank_sleeps(tune::Context& ctx, const Config&) {
  ctx.report({{"accuracy", 0.5}});
  if (ctx.rank() + 1 < ctx.size()) return;
  std::printf("rank %d sleeps\n", ctx.rank());
  for (;;) pause();
}

template <auto fn>
auto sweep(tune::Options<Config> options) {
  options.metric = "accuracy";
  options.mode = tune::Max;
  options.show = tune::Show::None;
  return tune::run<fn>(std::move(options));
}

/// Of a trial whose last rank sleeps. On a slow machine a short silence is over before the ranks
/// have come so far, and the trial ends before its silence was told of: both are longer then.
tune::Results<Config> silent_gang() {
  for (auto silence = 5s;; silence *= 2) {
    auto results = sweep<last_rank_sleeps>({.space = {},
                                            .trials = 1,
                                            .each = {.workers = 2},
                                            .time_budget = 2 * kGuard,
                                            .stop_grace = 1s,
                                            .notice_silence = silence,
                                            .stop = {.trial_time = 3 * silence}});
    const bool is_told =
        results.summary().find("last printed 'rank 1 sleeps'") != std::string::npos;
    if (is_told || 6 * silence > kGuard) return results;
  }
}

}  // namespace

TEST_CASE("every trial of a sweep is a gang, and ASHA stops the worse ones", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = sweep<train>({.space = {{"lr", tune::uniform(0, 1)}},
                                     .trials = 12,
                                     .scheduler = tune::asha({.max_t = 9, .eta = 3}),
                                     .each = {.workers = 2},
                                     .seed = 1,
                                     // An overloaded machine loses connections.
                                     .max_failures = 3});
  std::size_t stopped = 0;
  for (const auto& trial : results.trials()) {
    CHECK(trial.config.lr <= results.best().config.lr);
    CHECK(trial.trial.last.at(1).value == 2);
    stopped += trial.trial.status == tune::Status::Stopped ? 1 : 0;
  }
  CHECK(stopped > 0);
  CHECK(results.best().trial.t == 9);
}

TEST_CASE("as many gangs run at once as the cluster has room for", "[tune][cluster]") {
  tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = sweep<meets_another>({.space = {{"index", tune::grid({0, 1})}},
                                             .each = {.workers = 2},
                                             .config = {.folder = folder.path().string()}});
  for (const auto& trial : results.trials()) CHECK(trial.trial.error == "");
}

TEST_CASE("a rank that stays after a stop, beside one that throws, keeps no place",
          "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = sweep<one_stays>({.space = {},
                                         .trials = 3,
                                         .each = {.workers = 2},
                                         .time_budget = 2 * kGuard,
                                         .stop = {.reports = 1}});
  CHECK(results.ended_early() == "");
  for (const auto& trial : results.trials()) CHECK(trial.trial.status == tune::Status::Terminated);
}

TEST_CASE("a gang one rank of which sleeps is named, and ends when its time is over",
          "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = silent_gang();
  CHECK(results.ended_early() == "");
  const auto& trial = results.trials()[0].trial;
  CHECK(trial.status == tune::Status::Terminated);
  CHECK_THAT(trial.reason, Catch::EndsWith("without another report"));
  CHECK(trial.failures == 0);
  const auto summary = results.summary();
  INFO(summary);
  CHECK_THAT(summary,
             Catch::Contains("note: trial 0 has not reported for ") &&
                 Catch::Contains("and keeps its place; .stop.trial_time ends it ") &&
                 Catch::Contains(" after its first start: rank 0 has returned; rank 1 (process ") &&
                 Catch::Contains(") last printed 'rank 1 sleeps'"));
}

TEST_CASE("a trial that loses a rank is errored, and the others go on", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results =
      sweep<loses_a_rank>({.space = {{"index", tune::grid({0, 1, 2})}}, .each = {.workers = 2}});
  CHECK(results.trials()[0].trial.status == tune::Status::Terminated);
  CHECK(results.trials()[1].trial.status == tune::Status::Errored);
  CHECK(results.trials()[1].trial.error.find("signal 9") != std::string::npos);
  CHECK(results.best().config.index == 2);
}

TEST_CASE(
    "a trial whose process is killed before it begins is started again, and the results say so",
    "[tune][cluster]") {
  tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = tune::run<trains_after_all>({.trials = 1,
                                                    .metric = "accuracy",
                                                    .mode = tune::Max,
                                                    .each = {.workers = 2},
                                                    .storage = folder.path(),
                                                    .config = {.folder = folder.path().string()},
                                                    .show = tune::Show::None});
  REQUIRE(std::filesystem::exists(folder.path() / "killed"));
  const auto& trial = results.trials()[0].trial;
  CHECK(trial.status == tune::Status::Terminated);
  CHECK(trial.error == "");
  CHECK(trial.failures == 0);
  CHECK(trial.restarts == 1);
  CHECK(trial.restart_reason.find("signal 9") != std::string::npos);
  CHECK(results.summary().find("1 restart after failures of the cluster; the last of trial 0: ") !=
        std::string::npos);
  const auto journal = tune::content_of(results.folder() / "journal.jsonl");
  CHECK(journal.find(R"("fault":"system")") != std::string::npos);
}

TEST_CASE("a trial whose process ends by itself is the trial's failure", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = sweep<exits>({.space = {}, .trials = 1});
  CHECK(results.trials()[0].trial.status == tune::Status::Errored);
  CHECK(results.trials()[0].trial.restarts == 0);
  CHECK(results.trials()[0].trial.error.find("code 7") != std::string::npos);
}

TEST_CASE("an attempt after a failure goes on from the trial's checkpoint", "[tune][cluster]") {
  tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = sweep<fails_once>({.space = {},
                                          .trials = 1,
                                          .each = {.workers = 2},
                                          .storage = folder.path(),
                                          .max_failures = 1});
  CHECK(results.best().value() == 0.9);
  CHECK(results.best().trial.failures == 1);
  CHECK(results.best().trial.best_t == 2);
}

TEST_CASE("an exception of a trial is kept with its type and text", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = sweep<throws>({.space = {{"index", tune::grid({0, 1})}}});
  CHECK(results.trials()[0].trial.status == tune::Status::Terminated);
  CHECK(results.trials()[1].trial.status == tune::Status::Errored);
  CHECK(results.trials()[1].trial.error.find("std::out_of_range: index 1 is bad") !=
        std::string::npos);
}

TEST_CASE("a function that always throws ends its run with what it throws", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = sweep<throws>({.space = {{"index", 1}}, .trials = 60});
  CHECK_THAT(results.ended_early(), Catch::Contains("trials all failed without a report of") &&
                                        Catch::Contains("index 1 is bad"));
  CHECK(results.trials().size() < 20);
}

TEST_CASE("a gang that fits no cluster of this size is refused at once", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const tune::Options<Config> options{.space = {}, .trials = 3, .each = {.each = {.cpus = 1000}}};
  CHECK_THROWS_AS(sweep<train>(options), Impossible);
  CHECK_THROWS_WITH(sweep<train>(options), Catch::Contains(".each.workers = 1"));
}

TEST_CASE("a search that fits no cluster of this size leaves no run behind", "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  const tune::TemporaryFolder folder;
  tune::Options<Config> options{
      .space = {}, .trials = 2, .each = {.each = {.cpus = 1000}}, .storage = folder.path()};
  CHECK_THROWS_AS(sweep<train>(options), Impossible);
  CHECK(std::filesystem::is_empty(folder.path()));

  // What an earlier run has found stays.
  options.each = {};
  const auto found = sweep<train>(options);
  options.trials = 4;
  options.each.each.cpus = 1000;
  options.resume = true;
  CHECK_THROWS_AS(sweep<train>(options), Impossible);
  CHECK(tune::load<Config>(found.folder()).trials().size() >= 2);
}

TEST_CASE("a trial that does not come to its next report is ended with the time budget",
          "[tune][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2});
  // On a slow machine its first report may come after half a second.
  for (auto budget = 500ms; budget < kGuard; budget *= 2) {
    const auto results = sweep<never_reports_again>({.space = {},
                                                     .trials = 100,
                                                     .each = {.workers = 2},
                                                     .time_budget = budget,
                                                     .stop_grace = 100ms});
    CHECK_THAT(results.ended_early(),
               Catch::StartsWith("the time budget of ") && Catch::EndsWith(" s is used up"));
    CHECK(results.duration() >= budget);
    if (results.trials()[0].trial.t == 0) continue;
    CHECK(results.best().value() == 0.5);
    CHECK(results.best().trial.status == tune::Status::Stopped);
    return;
  }
  FAIL("no trial reported within the time budget");
}

TEST_CASE("Ctrl-C ends the gangs at once and keeps what they reported", "[tune][cluster]") {
  tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  std::jthread interrupter([&](std::stop_token over) {
    while (!over.stop_requested() && !std::filesystem::exists(folder.path() / "reported"))
      usleep(2'000);
    if (!over.stop_requested()) kill(getpid(), SIGINT);
  });

  const auto results = sweep<never_reports_again>({.space = {},
                                                   .trials = 100,
                                                   .each = {.workers = 2},
                                                   .storage = folder.path(),
                                                   .config = {.folder = folder.path().string()},
                                                   .stop_grace = 10min});

  CHECK(results.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  CHECK(results.best().value() == 0.5);
  CHECK(results.best().trial.reason == "the run ended: ended by the user (SIGINT)");
  CHECK(results.duration() < kGuard);
  CHECK(std::filesystem::exists(results.folder() / "summary.json"));
}

}  // namespace sweep_test
