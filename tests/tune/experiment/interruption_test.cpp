// Each scheduler and each searcher, interrupted at a hundred places and more of a search in virtual
// time, and compared from there with the search that nobody interrupted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "experiment/journal.hpp"
#include "rounds.hpp"
#include "run/drive.hpp"
#include "run/fake_launcher.hpp"
#include "support/recording.hpp"

namespace interruption_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr unsigned kPlaces = 100;  // at which a search is interrupted, at least
constexpr std::uint64_t kSeed = 9;

struct Search {
  std::uint64_t trials;
  std::int64_t reports;  // that the function makes before it returns
  SchedulerFactory scheduler;
  SearcherFactory searcher = {};  // empty: random
  bool has_two_objectives = false;
};

const SearchSpace kSpace{
    {"x", uniform(0, 1)}, {"y", loguniform(1e-3, 1)}, {"layers", integer(1, 8)}};
const SearchSpace kMutated{{"x", uniform(0, 1)}, {"y", loguniform(1e-3, 1)}};

Experiment begun(const Search& search) {
  ExperimentOptions options{
      .objective = {"accuracy", Max}, .seed = kSeed, .max_failures = 1, .system_retries = 2};
  if (search.has_two_objectives) options.objectives = {{"accuracy", Max}, {"cost", Min}};
  const SearchSetup setup{.space = kSpace,
                          .objective = options.objective,
                          .seed = kSeed,
                          .trials = search.trials,
                          .objectives = options.objectives};
  auto searcher = search.searcher ? search.searcher(setup)
                                  : std::make_unique<RandomSearcher>(kSpace, kSeed, search.trials);
  return {options, std::move(searcher), search.scheduler(options.objective, kSeed)};
}

double number(const Configuration& config, std::string_view name) {
  const auto field = std::ranges::find(config, name, &Configuration::value_type::first);
  return std::get<double>(field->second.value());
}

/// Some attempts fail, some values are not finite, and some reports have no checkpoint.
FakeLauncher::Script script_of(const Search& search, std::size_t gangs) {
  FakeLauncher::Script script{.capacity = gangs, .reports = search.reports};
  script.metrics = [](const Launch& launch, std::int64_t t) {
    Random random(kSeed, launch.trial, fmt::format("value {}", t));
    const auto x = number(launch.config, "x"), y = number(launch.config, "y");
    const auto steps = static_cast<double>(t);
    auto accuracy =
        (1 - (x - 0.3) * (x - 0.3) - 0.1 * std::abs(std::log10(y) + 1)) * steps / (1 + steps) +
        0.01 * random.unit();
    if (random.below(25) == 0) accuracy = std::numeric_limits<double>::quiet_NaN();
    return Metrics{{"accuracy", accuracy}, {"cost", x + y}};
  };
  script.step = [](const Launch& launch) {
    return 0.5 + Random(kSeed, launch.trial, "step").unit();
  };
  script.failure = [](const Launch& launch, std::int64_t t) -> std::optional<std::string> {
    const bool fails = launch.attempt == 1 && launch.trial % 7 == 3 && t == 2;
    return fails ? std::optional<std::string>("its node was lost") : std::nullopt;
  };
  script.fault = Fault::System;
  script.checkpoint = [](const Launch& launch, std::int64_t t) {
    const bool has_one = (static_cast<std::int64_t>(launch.trial) + t) % 4 != 0;
    return has_one ? fmt::format("{}/{}/{}", launch.trial, launch.takeovers, t) : "";
  };
  return script;
}

/// A search to its end, as its journal has it.
struct Whole {
  Experiment experiment;
  Recording recording;
  std::vector<Event> events = {};

  std::string text() const { return fate(experiment) + experiment.searcher().save(); }
};

Whole undisturbed(const Search& search, std::size_t gangs) {
  Whole whole{begun(search), {}};
  whole.recording = record(whole.experiment, script_of(search, gangs));
  const auto& [journal, ends, states] = whole.recording;
  for (std::size_t line = 1; line < ends.size(); ++line)
    whole.events.push_back(event_from(
        std::string_view(journal).substr(ends[line - 1], ends[line] - ends[line - 1] - 1)));
  return whole;
}

/// The search as it was after so many events, taken up by turns from all of its journal and from a
/// snapshot of its state.
Experiment taken_up(const Search& search, const Whole& whole, std::size_t events) {
  auto experiment = begun(search);
  if (events % 2 == 0) {
    experiment.load(whole.recording.states[events]);
  } else {
    for (std::size_t i = 0; i < events; ++i) experiment.apply(whole.events[i]);
  }
  return experiment;
}

/// What was under way is launched again, in its order and with what it had.
/// -> how many of `events` that covers.
std::size_t launch_again(Experiment& resumed, std::span<const Event> events) {
  std::vector<Trial> before;
  std::ranges::copy_if(resumed.trials(), std::back_inserter(before),
                       [](const Trial& trial) { return trial.in_flight && !trial.stopping; });
  std::ranges::sort(before, {}, [](const Trial& trial) {
    return std::pair(trial.status != Status::Running, trial.launch);
  });
  resumed.requeue_running(Seconds(0));
  std::size_t covered = 0;
  for (const auto& trial : before) {
    const auto next = resumed.next(Seconds(0));
    REQUIRE(std::holds_alternative<Launch>(next));
    const auto& launch = std::get<Launch>(next);
    REQUIRE(launch.trial == trial.id);
    REQUIRE(launch.attempt == trial.attempt + (trial.replaced ? 1 : 0));
    if (!trial.replaced) REQUIRE(resumed.trials()[trial.id].launch == trial.launch);
    REQUIRE(launch.config == trial.config);
    REQUIRE(launch.checkpoint == trial.checkpoint);
    REQUIRE(launch.after_t == trial.checkpoint_t);
    REQUIRE(launch.workers == trial.workers);
    if (trial.replaced) {  // its next attempt was to begin in the step that was interrupted
      const auto& event = events[covered++];
      REQUIRE((event.kind == Event::Kind::Launched && event.trial == launch.trial &&
               event.attempt == launch.attempt && event.config == launch.config));
    } else if (trial.status == Status::Running) {
      resumed.started(trial.id, Seconds(0));
    }
  }
  return covered;
}

/// Lets the same things happen in the same order; apply() throws where the search decides otherwise
/// than it did when nobody interrupted it: a verdict, who is launched next, with which
/// configuration, from which checkpoint, in how large a gang, and all of their reasons.
void go_on_like(Experiment& resumed, std::span<const Event> events) {
  std::set<TrialId> are_over;  // those that were told to end have no gang left that could
  for (const auto& trial : resumed.trials()) {
    if (trial.in_flight && trial.stopping) are_over.insert(trial.id);
  }
  for (const auto& event : events.subspan(launch_again(resumed, events))) {
    const bool is_end = event.kind == Event::Kind::Ended || event.kind == Event::Kind::Failed;
    if (is_end && are_over.erase(event.trial) > 0) continue;
    resumed.apply(event);
  }
}

void check_at_a_hundred_places(const Search& search, std::size_t gangs) {
  CAPTURE(gangs);
  const auto whole = undisturbed(search, gangs);
  const auto& events = whole.events;
  REQUIRE(events.size() > kPlaces);
  const auto expected = whole.text();
  const auto step = events.size() / troupe::test::rounds(kPlaces, 16);
  for (std::size_t place = 1; place < events.size(); place += step) {
    CAPTURE(place, to_line(events[place]));
    auto resumed = taken_up(search, whole, place);
    go_on_like(resumed, std::span(events).subspan(place));
    REQUIRE(fate(resumed) + resumed.searcher().save() == expected);
    if (gangs > 1) continue;
    // One gang alone comes to the same by itself, with what it trains twice.
    auto driven = taken_up(search, whole, place);
    driven.requeue_running(Seconds(0));
    FakeLauncher cluster(script_of(search, gangs));
    drive(driven, cluster, {}, {});
    REQUIRE(fate(driven) + driven.searcher().save() == expected);
  }
}

// Under sanitizers with the second number of gangs alone.
void check_scheduler(const Search& search) {
  for (const auto gangs : troupe::test::settings<std::size_t>({1, 4}))
    check_at_a_hundred_places(search, gangs);
}
void check_searcher(const Search& search) {
  for (const auto gangs : troupe::test::settings<std::size_t>({4, 1}))
    check_at_a_hundred_places(search, gangs);
}

SchedulerFactory halving() { return asha({.max_t = 9, .eta = 3}); }

}  // namespace

// ---- schedulers ---------------------------------------------------------------------------------

TEST_CASE("fifo, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({24, 4, fifo()});
}

TEST_CASE("asha, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({40, 12, asha({.max_t = 9, .eta = 3, .brackets = 2})});
}

TEST_CASE("asha with promotion, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({30, 12, asha({.max_t = 9, .eta = 3, .promote = true})});
}

TEST_CASE("hyperband, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({34, 12, hyperband({.max_t = 9, .eta = 3})});
}

TEST_CASE("median stopping, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({30, 6, median_stopping({.grace = 2})});
}

TEST_CASE("pbt, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({6, 20, pbt({.interval = 2, .mutate = kMutated})});
}

TEST_CASE("synchronous pbt, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({6, 20, pbt({.interval = 3, .synchronous = true, .mutate = kMutated})});
}

TEST_CASE("pb2, interrupted at a hundred places, decides as if it never had been",
          "[tune][resume][journal][alone]") {
  check_scheduler({4, 24, pb2({.interval = 3, .mutate = kMutated, .known = 20})});
}

TEST_CASE(
    "resource_changing over asha, interrupted at a hundred places, decides as if it never had been",
    "[tune][resume][journal][alone]") {
  check_scheduler({24, 14, resource_changing(asha({.max_t = 12, .eta = 3}), {.total = 16})});
}

TEST_CASE(
    "resource_changing over promotion, interrupted at a hundred places, decides as if it never had "
    "been",
    "[tune][resume][journal][alone]") {
  check_scheduler(
      {24, 14, resource_changing(asha({.max_t = 12, .eta = 3, .promote = true}), {.total = 16})});
}

// ---- searchers ----------------------------------------------------------------------------------

TEST_CASE("sobol, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), sobol()});
}

TEST_CASE("halton, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), halton()});
}

TEST_CASE("tpe, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), tpe({.startup_trials = 5})});
}

TEST_CASE("cmaes, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), cmaes({.population = 4})});
}

TEST_CASE("gaussian_process, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({24, 4, fifo(),
                  gaussian_process({.startup = 5, .candidates = 16, .fitted = 12, .known = 20})});
}

TEST_CASE("bohb_model, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), bohb_model()});
}

TEST_CASE(
    "bohb_model beside hyperband, interrupted at a hundred places, suggests as if it never had "
    "been",
    "[tune][resume][journal][alone]") {
  check_searcher({34, 9, hyperband({.max_t = 9, .eta = 3}), bohb_model()});
}

TEST_CASE("nsga2, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), nsga2({.population = 6}), true});
}

TEST_CASE("repeated tpe, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), repeated(tpe({.startup_trials = 3}), 2)});
}

TEST_CASE("batched cmaes, interrupted at a hundred places, suggests as if it never had been",
          "[tune][resume][journal][alone]") {
  check_searcher({40, 9, halving(), batched(cmaes({.population = 4}), 4)});
}

}  // namespace interruption_test
