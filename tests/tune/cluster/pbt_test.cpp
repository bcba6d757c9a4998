#include <troupe/tune.hpp>

#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/cluster.hpp>

#include "support/member.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe;
using Catch::Contains;

namespace {

struct MemberConfig {
  double lr = 0.5;
  double momentum = 0;
  int batch = 32;
  std::int64_t steps = 8;
  int in_step = 0;  // so many members wait for each other before each step
  std::string folder = {};
};

void trains(tune::Context& ctx, const MemberConfig& config) {
  tune::MemberAttempt member(ctx, {config.in_step, config.folder});
  if (member.has_taken_over() && !config.folder.empty())
    tune::make_file(config.folder + "/took-over");
  while (member.steps() < config.steps) {
    if (member.step(config.lr) == Verdict::Stop) return;
  }
}

void reports_no_checkpoint(tune::Context& ctx, const MemberConfig& config) {
  for (std::int64_t step = 1; step <= config.steps; ++step) {
    if (ctx.report({{"score", config.lr}}) == Verdict::Stop) return;
  }
}

/// What the tests of this file have in common.
template <auto fn = trains>
tune::Results<MemberConfig> train_population(tune::Options<MemberConfig> options) {
  options.metric = "score";
  options.mode = tune::Max;
  options.show = tune::Show::None;
  options.max_failures = 3;  // an overloaded machine loses connections
  return tune::run<fn>(std::move(options));
}

double lr_of(const tune::Configuration& config) {
  for (const auto& [name, value] : config) {
    if (name == "lr") return std::get<double>(value.value());
  }
  throw std::out_of_range("lr");
}

void check_all_ended_at(const tune::Results<MemberConfig>& results, std::int64_t t) {
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ", error '" << trial.error << "', reason '" << trial.reason << "'");
    CHECK(trial.status == tune::Status::Terminated);
    CHECK(trial.t == t);
    CHECK(trial.failures == 0);
  }
}

std::size_t takeovers_of(const tune::Results<MemberConfig>& results) {
  std::size_t sum = 0;
  for (const auto& result : results.trials()) sum += result.trial.takeovers.size();
  return sum;
}

}  // namespace

TEST_CASE(
    "a member takes over another's weights bit for bit, in its own processes and with a "
    "configuration of its own",
    "[tune][pbt][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = train_population(
      {.space = {{"lr", tune::grid({0.1, 0.9})}, {"momentum", tune::uniform(0, 1)}},
       .scheduler = tune::pbt({.interval = 2,
                               .resample = 0,
                               .factors = {0.5},
                               .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .each = {.workers = 2},
       .storage = folder.path(),
       .config = {.steps = 12, .in_step = 2, .folder = folder.path().string()}});
  check_all_ended_at(results, 12);
  tune::check_lineage(results);
  REQUIRE(results.trials().size() == 2);
  REQUIRE_FALSE(results.trials()[0].trial.takeovers.empty());
  const auto restored = tune::check_what_was_restored(results.folder(), 2);
  CHECK(restored.of_others == restored.attempts);
  CHECK(restored.of_others > 0);

  std::map<tune::TrialId, std::set<std::pair<double, double>>> processes;
  for (const auto& report : tune::lines_of(results.folder() / "reports.jsonl")) {
    const auto trial = report.at("trial").get<tune::TrialId>();
    const auto attempt = report.at("attempt").get<int>();
    processes[trial].emplace(tune::metric_of(report, "pid"), tune::metric_of(report, "last_pid"));
    const auto own = std::filesystem::path(".") / "trials" / std::to_string(trial);
    const auto storage =
        std::filesystem::path(report.at("checkpoint").get<std::string>()).parent_path();
    CHECK(storage == (attempt == 1 ? own : own / ("takeover-" + std::to_string(attempt - 1))));
    CHECK(tune::metric_of(report, "lr") == report.at("config").at("lr"));
  }
  CHECK(processes[0].size() == 1);
  CHECK(processes[1].size() == 1);
  for (const auto& result : results.trials()) {
    for (const auto& takeover : result.trial.takeovers) {
      CHECK(takeover.donor != result.trial.id);
      CHECK(lr_of(takeover.after) == lr_of(takeover.donor_config) / 2);
      // Momentum, which does not change.
      CHECK(takeover.after.back() == takeover.donor_config.back());
    }
  }
}

TEST_CASE("eight members on two places take turns, and each of them is trained to the end",
          "[tune][pbt][cluster]") {
  const bool synchronous = GENERATE(false, true);
  CAPTURE(synchronous);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  const auto results = train_population(
      {.space = {{"lr", tune::uniform(0, 1)}},
       .trials = 8,
       .scheduler = tune::pbt(
           {.interval = 2, .synchronous = synchronous, .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .each = {.workers = 2},
       .storage = folder.path(),
       .seed = 3});
  check_all_ended_at(results, 8);
  tune::check_lineage(results);
  CHECK(results.trials().size() == 8);
  const auto restored = tune::check_what_was_restored(results.folder(), 2);
  CHECK(restored.of_others > 0);
  CHECK(restored.attempts > restored.of_others);  // some were paused

  // Nobody trains past its first judgement while another waits for its first place.
  std::set<tune::TrialId> begun;
  for (const auto& event : tune::lines_of(results.folder() / "journal.jsonl")) {
    const auto kind = event.value("event", "");
    if (kind == "launched") begun.insert(event.at("trial").get<tune::TrialId>());
    if (kind == "reported" && begun.size() < 8) CHECK(event.at("t") <= 2);
  }
  CHECK_THAT(results.summary(), Contains(std::to_string(takeovers_of(results)) + " takeover"));
}

TEST_CASE("a population in one process takes turns too", "[tune][pbt]") {
  const bool synchronous = GENERATE(false, true);
  CAPTURE(synchronous);
  const tune::TemporaryFolder folder;
  const auto results = train_population(
      {.space = {{"lr", tune::uniform(0, 1)}},
       .trials = 5,
       .scheduler = tune::pbt(
           {.interval = 2, .synchronous = synchronous, .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .storage = folder.path(),
       .in_process = true});
  check_all_ended_at(results, 8);
  tune::check_lineage(results);
  const auto restored = tune::check_what_was_restored(results.folder(), 1);
  CHECK(restored.of_others > 0);
  CHECK(restored.attempts > restored.of_others);
}

TEST_CASE("no takeover at a member's last report stands in the results", "[tune][pbt]") {
  const bool synchronous = GENERATE(false, true);
  CAPTURE(synchronous);
  const tune::TemporaryFolder folder;
  const auto results = train_population(
      {.space = {{"lr", tune::uniform(0, 1)}},
       .trials = 6,
       .scheduler = tune::pbt(
           {.interval = 4, .synchronous = synchronous, .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .storage = folder.path(),
       .in_process = true});
  check_all_ended_at(results, 8);
  CHECK(takeovers_of(results) > 0);
  for (const auto& result : results.trials()) {
    CAPTURE(result.trial.id);
    for (const auto& takeover : result.trial.takeovers) CHECK(takeover.t < 8);
    CHECK(lr_of(result.trial.config) == result.trial.last.at("lr"));
  }
}

TEST_CASE(
    "a function that reports no checkpoint is told so at its first report, and trains to its end",
    "[tune][pbt][cluster]") {
  const bool synchronous = GENERATE(false, true);
  CAPTURE(synchronous);
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 2});
  const auto results = train_population<reports_no_checkpoint>(
      {.space = {{"lr", tune::uniform(0, 1)}},
       .trials = 3,
       .scheduler = tune::pbt(
           {.interval = 2, .synchronous = synchronous, .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .storage = folder.path()});
  check_all_ended_at(results, 8);
  CHECK(takeovers_of(results) == 0);
  const std::string notice = "pbt: the first report has no checkpoint";
  CHECK_THAT(results.summary(), Contains("  note: " + notice));
  const auto reports = tune::events_of(results.folder(), "reported");
  CHECK_THAT(reports.front().value("notice", ""), Catch::StartsWith(notice));
  CHECK(std::ranges::count_if(reports, [](const auto& each) { return each.contains("notice"); }) ==
        1);
  CHECK_FALSE(std::filesystem::exists(results.folder() / "pbt.jsonl"));
}

TEST_CASE("Ctrl-C in the midst of takeovers ends the population and keeps its results",
          "[tune][pbt][cluster]") {
  const tune::TemporaryFolder folder;
  const auto cluster = init(InitOptions{.cpus = 4});
  std::jthread interrupter([&](std::stop_token over) {
    while (!over.stop_requested() && !std::filesystem::exists(folder.path() / "took-over"))
      usleep(1'000);
    if (!over.stop_requested()) kill(getpid(), SIGINT);
  });
  const auto results = train_population(
      {.space = {{"lr", tune::uniform(0, 1)}},
       .trials = 6,
       .scheduler = tune::pbt({.interval = 1, .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .each = {.workers = 2},
       .storage = folder.path(),
       .config = {.steps = 1'000'000, .folder = folder.path().string()}});
  CHECK(results.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  for (const auto& result : results.trials()) {
    CHECK(result.trial.status == tune::Status::Stopped);
    CHECK(result.trial.reason == "the run ended: ended by the user (SIGINT)");
  }
  tune::check_lineage(results);
}

TEST_CASE("what a population can not do with is refused before anything is launched",
          "[tune][pbt]") {
  const tune::TemporaryFolder folder;
  const bool in_process = GENERATE(false, true);  // no cluster is there, and none is made
  tune::Options<MemberConfig> options{.space = {{"lr", tune::uniform(0, 1)}},
                                      .trials = 4,
                                      .storage = folder.path() / "results",
                                      .in_process = in_process};
  tune::PbtOptions pbt{.interval = 2, .mutate = {{"lr", tune::uniform(0, 1)}}};
  std::string text;
  SECTION("no storage") {
    options.storage.clear();
    text =
        "tune: this .scheduler moves checkpoints from trial to trial, and without .storage none "
        "are written; name a folder";
  }
  SECTION("a searcher of its own") {
    options.searcher = [](const tune::SearchSetup& setup) {
      return std::make_unique<tune::RandomSearcher>(setup.space, setup.seed, setup.trials);
    };
    text =
        "tune: this .scheduler searches by itself, by changing configurations; leave out .searcher";
  }
  SECTION("a single trial") {
    options.trials = 1;
    text = "tune: this .scheduler needs at least 2 trials, and .trials makes 1";
  }
  SECTION("a single point of a grid") {
    options.space = {{"lr", tune::grid({0.5})}};
    options.trials = 0;
    text = "tune: this .scheduler needs at least 2 trials, and .trials makes 1";
  }
  SECTION("a field to change that the configuration does not have") {
    pbt.mutate.push_back({"learning_rate", tune::uniform(0, 1)});
    text = "the configuration has no field 'learning_rate'";
  }
  SECTION("a field to change that can not take what it would become") {
    pbt.mutate.push_back({"batch", tune::uniform(16, 64)});
    text =
        "field 'batch' takes an integer, not the real number 16; tune::integer(low, high) is a "
        "domain of integers";
  }
  SECTION("trials that end before anybody is judged") {
    options.stop.reports = 2;
    text =
        "tune: nobody would be judged: the first time is at t=2 by the .scheduler's options, and "
        "trials end at .stop.reports = 2";
  }
  SECTION("trials that end in the burn-in") {
    options.stop.reports = 9;
    pbt.burn_in = 20;
    text =
        "tune: nobody would be judged: the first time is at t=20 by the .scheduler's options, and "
        "trials end at .stop.reports = 9";
  }
  options.scheduler = tune::pbt(pbt);
  CHECK_THROWS_WITH(train_population(std::move(options)), text);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "results"));
}
