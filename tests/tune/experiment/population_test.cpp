#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/pb2.hpp>
#include <troupe/tune/schedulers/pbt.hpp>

#include "../../support/rounds.hpp"
#include "experiment/journal.hpp"
#include "run/drive.hpp"
#include "run/fake_launcher.hpp"
#include "support/recording.hpp"

namespace population_test {

using namespace troupe;
using namespace troupe::tune;

// Populations under random failures, ends, losses and restarts, in virtual time.
namespace {

struct Shape {
  std::uint64_t seed = 0;
  std::uint64_t members = 8;
  std::size_t room = 3;
  bool synchronous = false;
  std::int64_t reports = 20;
  std::uint64_t failures_in_1000 = 0;  ///< of reports
  std::uint64_t losses_in_1000 = 0;    ///< of events: somebody deletes a checkpoint that is needed
  std::uint64_t checkpoints_in_10 = 10;
  bool is_bandit = false;  ///< pb2, not pbt: its takeovers cost a thousand times as much
};

Shape random_shape(std::uint64_t seed) {
  Random random(seed, 0, "shape");
  return {.seed = seed,
          .members = 2 + random.below(9),
          .room = 1 + random.below(6),
          .synchronous = random.below(2) == 0,
          .reports = 6 + static_cast<std::int64_t>(random.below(20)),
          .failures_in_1000 = random.below(3) * 20,
          .losses_in_1000 = random.below(3) * 10,
          .checkpoints_in_10 = random.below(4) == 0 ? random.below(10) : 10,
          .is_bandit = seed % 16 == 2};
}

Experiment population_of(const Shape& shape) {
  Random random(shape.seed, 1, "options");
  const auto interval = 1 + static_cast<std::int64_t>(random.below(4));
  const auto burn_in = static_cast<std::int64_t>(random.below(4));
  const SearchSpace space{{"lr", loguniform(1e-3, 1)}, {"batch", choice({8, 16, 32})}};
  ExperimentOptions options{
      .objective = {"accuracy", Max}, .seed = shape.seed, .max_failures = 2, .system_retries = 2};
  const PbtOptions pbt_options{
      .interval = interval,
      .burn_in = burn_in,
      .quantile = random.below(2) == 0 ? 0.25 : 0.5,
      .synchronous = shape.synchronous,
      .mutate = {{"lr", loguniform(1e-3, 1)}, {"batch", choice({8, 16, 32})}}};
  const auto scheduler = shape.is_bandit ? pb2({.interval = interval,
                                                .burn_in = burn_in,
                                                .quantile = pbt_options.quantile,
                                                .synchronous = shape.synchronous,
                                                .mutate = pbt_options.mutate})
                                         : pbt(pbt_options);
  return {options, std::make_unique<RandomSearcher>(space, shape.seed, shape.members),
          scheduler(options.objective, shape.seed)};
}

std::string checkpoint_name(TrialId trial, int attempt, std::int64_t t) {
  return fmt::format("{}/{}/{}", trial, attempt, t);
}

FakeLauncher::Script script_of(const Shape& shape) {
  FakeLauncher::Script script{.capacity = shape.room, .reports = shape.reports};
  script.value = [shape](const Launch& launch, std::int64_t t) {
    Random random(shape.seed, launch.trial, fmt::format("value {}", t));
    return random.below(20) == 0 ? std::numeric_limits<double>::quiet_NaN() : random.unit();
  };
  script.step = [shape](const Launch& launch) {
    return 0.2 + Random(shape.seed, launch.trial, "step").unit();
  };
  script.failure = [shape](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    Random random(shape.seed, launch.trial, fmt::format("failure {} {}", launch.attempt, t));
    if (random.below(1000) >= shape.failures_in_1000) return std::nullopt;
    return "lost";
  };
  script.fault = shape.seed % 2 == 0 ? Fault::Trial : Fault::System;
  script.checkpoint = [shape](const Launch& launch, std::int64_t t) {
    Random random(shape.seed, launch.trial, fmt::format("checkpoint {}", t));
    return random.below(10) < shape.checkpoints_in_10
               ? checkpoint_name(launch.trial, launch.attempt, t)
               : "";
  };
  return script;
}

/// Watches a population, keeps its checkpoints, and deletes every one that nothing pins.
class Warden {
 public:
  Warden(Experiment& experiment, const Shape& shape)
      : experiment_{experiment}, random_(shape.seed, 2, "warden"), shape_{shape} {}

  bool is_there(const std::string& checkpoint) const { return disk_.contains(checkpoint); }

  void see(const Event& event, const Trial* trial) {
    if (event.kind == Event::Kind::Reported) {
      ++reports;
      if (!event.checkpoint.empty()) {
        disk_.insert(event.checkpoint);
        had_[event.trial][event.checkpoint] = event.t;
      }
    }
    if (event.kind == Event::Kind::Failed && event.fault == Fault::Checkpoint) ++gone;
    if (const auto* exploit = std::get_if<Exploit>(&event.decision)) judge(*exploit, *trial);
    if (event.kind == Event::Kind::Launched && !event.checkpoint.empty()) {
      INFO("checkpoint " << event.checkpoint << " of trial " << event.trial);
      const bool is_kept = disk_.contains(event.checkpoint) || lost_.contains(event.checkpoint);
      // Of those before one that was lost nothing is promised.
      const bool is_tried = goes_back_.contains(event.trial);
      CHECK((is_kept || is_tried));
    }
    const bool has_no_other = event.kind == Event::Kind::Failed &&
                              event.fault == Fault::Checkpoint &&
                              std::holds_alternative<GoOn>(event.decision);
    if (has_no_other) goes_back_.insert(event.trial);
    if (event.kind == Event::Kind::Started) goes_back_.erase(event.trial);
    if (event.kind == Event::Kind::Failed && event.fault == Fault::Checkpoint)
      known_gone_.insert(last_launched_[event.trial]);
    if (event.kind == Event::Kind::Launched) last_launched_[event.trial] = event.checkpoint;
    clean_up();
  }

  std::size_t reports = 0;
  std::size_t exploits = 0;
  std::size_t gone = 0;

 private:
  void judge(const Exploit& exploit, const Trial& trial) {
    ++exploits;
    CHECK(exploit.donor != trial.id);
    REQUIRE_FALSE(exploit.checkpoint.empty());
    CHECK_FALSE(known_gone_.contains(exploit.checkpoint));
    auto& donors = had_[exploit.donor];
    REQUIRE(donors.contains(exploit.checkpoint));
    CHECK(donors[exploit.checkpoint] == exploit.checkpoint_t);
    had_[trial.id][exploit.checkpoint] = exploit.checkpoint_t;
    for (const auto& [name, domain] :
         SearchSpace{{"lr", loguniform(1e-3, 1)}, {"batch", choice({8, 16, 32})}}) {
      const auto field = std::ranges::find(exploit.config, name, &Configuration::value_type::first);
      REQUIRE(field != exploit.config.end());
      CHECK(domain.contains(field->second));
    }
    CHECK(schedule_of(experiment_.trials(), trial.id).size() <= trial.takeovers.size() + 40);
  }

  void clean_up() {
    const auto pinned = experiment_.pinned();
    std::erase_if(disk_, [&](const auto& checkpoint) {
      return !std::ranges::binary_search(pinned, checkpoint);
    });
    if (disk_.empty() || random_.below(1000) >= shape_.losses_in_1000) return;
    const auto victim =
        std::next(disk_.begin(), static_cast<std::ptrdiff_t>(random_.below(disk_.size())));
    lost_.insert(*victim);
    disk_.erase(victim);
  }

  Experiment& experiment_;
  Random random_;
  Shape shape_;
  std::set<std::string> disk_;
  std::set<std::string> lost_;        // deleted by somebody else
  std::set<std::string> known_gone_;  // and found out
  std::set<TrialId> goes_back_;       // to a checkpoint before the one that was gone
  std::map<TrialId, std::string> last_launched_;
  std::map<TrialId, std::map<std::string, std::int64_t>> had_;
};

Recording record_population(Experiment& experiment, const Shape& shape) {
  Warden warden(experiment, shape);
  auto script = script_of(shape);
  script.is_there = [&](const std::string& checkpoint) { return warden.is_there(checkpoint); };
  return record(experiment, std::move(script),
                [&](const Event& event, const Trial* trial) { warden.see(event, trial); });
}

}  // namespace

TEST_CASE("no member of a population is lost or waits for ever, whatever fails",
          "[tune][pbt][property]") {
  std::size_t exploits = 0, gone = 0;
  std::ptrdiff_t taken_back = 0;
  for (std::uint64_t seed = 1; seed <= troupe::test::rounds(400); ++seed) {
    const auto shape = random_shape(seed);
    CAPTURE(seed, shape.members, shape.room, shape.synchronous, shape.reports,
            shape.losses_in_1000);
    auto experiment = population_of(shape);
    Warden warden(experiment, shape);
    experiment.observe([&](const Event& event, const Trial* trial) { warden.see(event, trial); });
    auto script = script_of(shape);
    script.is_there = [&](const std::string& checkpoint) { return warden.is_there(checkpoint); };
    FakeLauncher cluster(script);
    // A population that waits for ever would tick on: the budget ends it, which the check below
    // finds.
    drive(experiment, cluster, {.time_budget = Seconds(10'000)}, {});
    REQUIRE(experiment.why_closed() == "");
    CHECK(experiment.trials().size() == shape.members);
    CHECK(cluster.most_running <= shape.room);
    for (const auto& trial : experiment.trials()) {
      CHECK(trial.over());
      if (trial.takeovers.empty() || trial.status != Status::Terminated) continue;
      const auto& last = trial.takeovers.back();
      const bool was_behind = last.donor == trial.id || last.t < last.checkpoint_t;
      CHECK((was_behind || trial.t > last.checkpoint_t));
    }
    taken_back += std::ranges::count_if(experiment.notices(), [](const auto& notice) {
      return notice.find("keeps its own configuration") != std::string::npos;
    });
    CHECK(experiment.pinned().empty());
    exploits += warden.exploits;
    gone += warden.gone;
  }
  CHECK(exploits > troupe::test::rounds(1000));
  CHECK(gone > troupe::test::rounds(50));
  CHECK(taken_back > 0);
}

TEST_CASE("a population's journal cut anywhere gives the state in which it was written",
          "[tune][pbt][journal]") {
  const auto seed = GENERATE(range(1u, 1 + troupe::test::rounds(24)));
  const auto shape = random_shape(seed);
  CAPTURE(seed, shape.members, shape.room, shape.synchronous);
  auto original = population_of(shape);
  const auto recording = record_population(original, shape);
  const std::size_t cuts = troupe::test::rounds(shape.is_bandit ? 20 : 60);
  const auto step = std::max<std::size_t>(1, recording.ends.size() / cuts);
  for (std::size_t line = 0; line < recording.ends.size(); line += step) {
    CAPTURE(line);
    auto replayed = population_of(shape);
    replay(recording.journal.substr(0, recording.ends[line]), replayed);
    REQUIRE(replayed.save() == recording.states[line]);
    if (line / step % 4 != 0) continue;
    auto loaded = population_of(shape);
    loaded.load(recording.states[line]);
    apply_events(recording.journal, loaded, {}, line);
    REQUIRE(loaded.save() == recording.states.back());
  }
}

TEST_CASE("a population interrupted anywhere and taken up again ends as if nothing had happened",
          "[tune][pbt][journal]") {
  const auto seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u);
  auto shape = random_shape(seed);
  shape.room = 1;
  shape.losses_in_1000 = 0;
  shape.checkpoints_in_10 = 10;
  CAPTURE(seed, shape.members, shape.synchronous);
  auto undisturbed = population_of(shape);
  const auto recording = record_population(undisturbed, shape);
  const auto step = troupe::test::stride(shape.is_bandit ? 12 : 3, recording.ends.size());
  for (std::size_t line = 1; line < recording.ends.size(); line += step) {
    CAPTURE(line);
    auto resumed = population_of(shape);
    replay(recording.journal.substr(0, recording.ends[line]), resumed);
    resumed.requeue_running(Seconds(0));
    FakeLauncher cluster(script_of(shape));
    drive(resumed, cluster, {}, {});
    REQUIRE(fate(resumed) == fate(undisturbed));
  }
}

TEST_CASE("eight members on two places train abreast and not one after the other", "[tune][pbt]") {
  const Shape shape{.seed = 3, .members = 8, .room = 2, .reports = 24};
  auto experiment = population_of(shape);
  std::int64_t widest = 0;
  experiment.observe([&](const Event& event, const Trial*) {
    if (event.kind != Event::Kind::Reported || experiment.trials().size() < 8) return;
    std::int64_t low = 1000, high = 0;
    for (const auto& trial : experiment.trials()) {
      if (trial.over()) continue;
      low = std::min(low, trial.t);
      high = std::max(high, trial.t);
    }
    widest = std::max(widest, high - low);
  });
  FakeLauncher cluster(script_of(shape));
  drive(experiment, cluster, {}, {});
  const auto interval = experiment.scheduler().needs().first_judged_t;
  CHECK(widest <= 2 * std::max<std::int64_t>(interval, 4));
  CHECK(widest < 10);
}

TEST_CASE("the best trial's schedule is made of configurations that were trained with",
          "[tune][pbt]") {
  const Shape shape{.seed = 11, .members = 6, .room = 3, .reports = 20};
  auto experiment = population_of(shape);
  // By the report that came of it.
  std::map<TrialId, std::map<std::int64_t, std::set<std::string>>> trained;
  experiment.observe([&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Reported)
      trained[event.trial][event.t].insert(to_string(event.config));
  });
  FakeLauncher cluster(script_of(shape));
  drive(experiment, cluster, {}, {});
  std::size_t longest = 0;
  for (const auto& trial : experiment.trials()) {
    const auto schedule = schedule_of(experiment.trials(), trial.id);
    longest = std::max(longest, schedule.size());
    CHECK(schedule.front().after_t == 0);
    for (const auto& segment : schedule) {
      if (segment.after_t >= shape.reports) continue;
      CAPTURE(trial.id, segment.after_t, segment.trial);
      CHECK(trained[segment.trial][segment.after_t + 1].contains(to_string(segment.config)));
    }
  }
  CHECK(longest > 2);
}

}  // namespace population_test
