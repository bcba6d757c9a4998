// What a trial does whose checkpoint is gone when it is to go on from it. In virtual time.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/hyperband.hpp>
#include <troupe/tune/schedulers/pbt.hpp>

#include "rounds.hpp"
#include "support/recording.hpp"

namespace gone_checkpoint_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

std::string checkpoint_of(TrialId trial, std::int64_t t) {
  return "checkpoints/" + std::to_string(trial) + "/" + std::to_string(t);
}

/// One trial, which fails once before its report 10.
Experiment one_trial() {
  ExperimentOptions options{.objective = {"accuracy", Max}, .max_failures = 1};
  return {options, std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, 1),
          fifo()(options.objective, 1)};
}

FakeLauncher::Script failing_script() {
  FakeLauncher::Script script{.reports = 12, .checkpoints = true};
  script.value = [](const Launch&, std::int64_t t) {
    return t == 2 ? 100.0 : static_cast<double>(t);
  };
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    if (launch.attempt > 1 || t < 10) return std::nullopt;
    return "rank 0 was killed";
  };
  return script;
}

struct Seen {
  std::vector<std::string> from;  ///< of each launch
  std::vector<std::int64_t> t;    ///< of each report that counts
};

/// With these reports' checkpoints gone.
Seen retried(Experiment& experiment, const std::set<std::int64_t>& gone) {
  auto script = failing_script();
  script.is_there = [gone](const std::string& checkpoint) {
    return std::ranges::none_of(gone, [&](auto t) { return checkpoint_of(0, t) == checkpoint; });
  };
  Seen seen;
  record(experiment, script, [&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Launched) seen.from.push_back(event.checkpoint);
    if (event.kind == Event::Kind::Reported) seen.t.push_back(event.t);
  });
  return seen;
}

std::vector<std::string> checkpoints(const std::vector<std::int64_t>& times) {
  std::vector<std::string> names;
  for (const auto t : times) names.push_back(t == 0 ? "" : checkpoint_of(0, t));
  return names;
}

void check_ended(const Experiment& experiment, const Seen& seen) {
  CHECK(seen.t == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(experiment.trials()[0].status == Status::Terminated);
  CHECK(experiment.trials()[0].failures == 1);
  CHECK(experiment.trials()[0].restarts == 0);
  CHECK(experiment.trials()[0].earlier.empty());
}

}  // namespace

TEST_CASE("a retry whose checkpoint is gone goes on from the one before, and says so",
          "[tune][experiment][checkpoint]") {
  auto experiment = one_trial();
  const auto seen = retried(experiment, {9});
  CHECK(seen.from == checkpoints({0, 9, 8}));
  check_ended(experiment, seen);
  REQUIRE(experiment.notices().size() == 1);
  CHECK(experiment.notices()[0] ==
        "trial 0 lost its checkpoint (checkpoints/0/9 is gone); it goes on from the checkpoint "
        "before, of t=8");
}

TEST_CASE(
    "a retry goes back past every checkpoint that is gone, to the best one, then to the start",
    "[tune][experiment][checkpoint]") {
  // Four before the last are known: the last ones, and the best report's, of t=2.
  const auto [gone, from] = GENERATE(table<std::set<std::int64_t>, std::vector<std::int64_t>>(
      {{{9, 8}, {0, 9, 8, 7}},
       {{9, 8, 7, 6, 5, 4, 3}, {0, 9, 8, 7, 6, 2}},
       {{9, 8, 7, 6, 5, 4, 3, 2, 1}, {0, 9, 8, 7, 6, 2, 0}}}));
  auto experiment = one_trial();
  const auto seen = retried(experiment, gone);
  CHECK(seen.from == checkpoints(from));
  check_ended(experiment, seen);
  CHECK(experiment.notices().size() == from.size() - 2);
  if (from.back() == 0) CHECK_THAT(experiment.notices().back(), Catch::EndsWith("from the start"));
}

TEST_CASE("a checkpoint that was written over is none to go back to",
          "[tune][experiment][checkpoint]") {
  auto experiment = one_trial();
  auto script = failing_script();
  script.checkpoints = false;
  script.checkpoint = [](const Launch&, std::int64_t t) {
    return t % 2 == 0 ? std::string("even") : std::string("odd");
  };
  script.is_there = [](const std::string& checkpoint) { return checkpoint != "odd"; };
  std::vector<std::pair<std::string, std::int64_t>> from;
  record(experiment, script, [&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Launched) from.emplace_back(event.checkpoint, event.t);
  });
  CHECK(from ==
        std::vector<std::pair<std::string, std::int64_t>>{{"", 0}, {"odd", 9}, {"even", 8}});
}

namespace {

/// Trials that are paused, promoted or taken over, of which some fail.
Experiment many_trials(const SchedulerFactory& scheduler, std::uint64_t seed) {
  ExperimentOptions options{.objective = {"accuracy", Max}, .seed = seed, .max_failures = 3};
  return {options, std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, seed, 12),
          scheduler(options.objective, seed)};
}

/// Of the checkpoints some part of ten is gone for ever.
FakeLauncher::Script forgetful_script(std::uint64_t seed, std::uint64_t part) {
  FakeLauncher::Script script{.capacity = 3, .reports = 12, .checkpoints = true};
  script.value = [seed](const Launch& launch, std::int64_t t) {
    return Random(seed, launch.trial, std::to_string(t)).unit();
  };
  script.failure = [seed](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    const bool fails =
        launch.attempt < 3 && Random(seed, launch.trial, "fails" + std::to_string(t)).below(8) == 0;
    return fails ? std::optional<std::string>("killed") : std::nullopt;
  };
  script.is_there = [seed, part](const std::string& checkpoint) {
    return Random(seed, 0, checkpoint).below(10) >= part;
  };
  return script;
}

}  // namespace

TEST_CASE("whatever checkpoints are gone, each trial ends, and its journal gives every state again",
          "[tune][experiment][checkpoint][property][alone]") {
  const std::vector<SchedulerFactory> schedulers{
      fifo(), asha({.max_t = 9, .eta = 3, .promote = true}), hyperband({.max_t = 9, .eta = 3}),
      pbt({.interval = 2, .max_t = 12, .mutate = {{"lr", uniform(0, 1)}}})};
  const auto which = GENERATE(0u, 1u, 2u, 3u);
  const auto part = GENERATE(from_range(troupe::test::settings<unsigned>({3, 10, 8})));
  constexpr std::uint64_t seeds = troupe::test::rounds(6, 6);
  std::size_t gone = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(which, part, seed);
    auto experiment = many_trials(schedulers[which], seed);
    std::map<TrialId, std::set<std::string>> failed;  // since the trial's last start
    const auto recording = record(
        experiment, forgetful_script(seed, part), [&](const Event& event, const Trial* trial) {
          if (event.kind == Event::Kind::Started) failed[event.trial].clear();
          if (event.kind != Event::Kind::Failed || event.fault != Fault::Checkpoint) return;
          ++gone;
          CHECK(trial->earlier.size() <= Trial::kMostEarlier);
          CHECK(failed[event.trial].insert(trial->launched_from).second);  // none is tried twice
          CHECK(trial->checkpoint != trial->launched_from);
        });
    for (const auto& trial : experiment.trials()) CHECK(trial.over());
    REQUIRE(experiment.why_closed().empty());
    for (std::size_t line = seed; line < recording.ends.size();
         line += troupe::test::stride(60, recording.ends.size())) {
      CAPTURE(line);
      auto replayed = many_trials(schedulers[which], seed);
      replay(recording.journal.substr(0, recording.ends[line]), replayed);
      REQUIRE(replayed.save() == recording.states[line]);
      auto loaded = many_trials(schedulers[which], seed);
      loaded.load(recording.states[line]);
      REQUIRE(loaded.save() == recording.states[line]);
      apply_events(recording.journal, loaded, {}, line);
      REQUIRE(loaded.save() == recording.states.back());
    }
  }
  CHECK(gone >= seeds / 2);
}

}  // namespace gone_checkpoint_test
