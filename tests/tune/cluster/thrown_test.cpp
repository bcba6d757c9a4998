// What a trial's function throws of the cluster that it uses itself is the trial's failure.
#include <troupe/tune.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/troupe.hpp>

namespace thrown_test {

using namespace troupe;

namespace {

using Kind = Failure::Kind;

struct Config {
  int index = 0;
};

/// What the cluster and its own gang say when an attempt is the system's to start again, or the run
/// is over.
constexpr std::array kKinds{Kind::Impossible, Kind::Disconnected, Kind::Program,
                            Kind::ObjectLost, Kind::StoreFull,    Kind::Cancelled,
                            Kind::GangBroken, Kind::ActorDied};

Failure failure_of(std::size_t index) {
  return {
      .kind = kKinds.at(index), .message = "said to the helper", .exit_code = -1};  // with its node
}

/// Each trial but the last passes on another failure, the first ones before they report.
void passes_on(tune::Context& ctx, const Config& config) {
  const auto index = static_cast<std::size_t>(config.index);
  const bool fails = index < kKinds.size();
  if (fails && index % 2 == 0) raise(failure_of(index));
  ctx.report({{"loss", config.index}});
  if (fails) raise(failure_of(index));
}

/// Says another thing in the log of each process.
void dies(tune::Context&, const Config& config) {
  std::printf("dying with %d\n", config.index);
  std::fflush(stdout);
  std::_Exit(3);
}

int helper(int value) { return value + 1; }

/// Trial 1 asks for a helper that no node can run.
void asks_for_too_much(tune::Context& ctx, const Config& config) {
  const auto options = with({.cpus = 0, .gpus = config.index == 1 ? 4.0 : 0.0});
  ctx.report({{"loss", options.task<helper>(config.index).get()}});
}

void check_all_but_the_last_failed(const tune::Results<Config>& results) {
  REQUIRE(results.trials().size() == kKinds.size() + 1);
  CHECK(results.ended_early().empty());
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ' ' << trial.error);
    CHECK(trial.attempt == 1);
    CHECK(trial.restarts == 0);
    if (static_cast<std::size_t>(config.index) == kKinds.size()) {
      CHECK(trial.status == tune::Status::Terminated);
    } else {
      CHECK(trial.status == tune::Status::Errored);
      CHECK_THAT(trial.error, Catch::Contains("said to the helper"));
    }
  }
}

tune::Options<Config> options_of(bool in_process) {
  // The last one first: it shows that the function can succeed.
  std::vector<Config> first;
  for (std::size_t at = kKinds.size() + 1; at-- > 0;) first.push_back({static_cast<int>(at)});
  return {.space = {{"index", tune::integer(0, 8)}},
          .trials = first.size(),
          .metric = "loss",
          .first = first,
          .show = tune::Show::None,
          .in_process = in_process};
}

}  // namespace

TEST_CASE("a failure of the cluster that a trial's function throws is that trial's, in a gang",
          "[tune][fault][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2, .gpus = 0});
  check_all_but_the_last_failed(tune::run<passes_on>(options_of(false)));
}

TEST_CASE("a failure of the cluster that a trial's function throws is that trial's, in process",
          "[tune][fault]") {
  check_all_but_the_last_failed(tune::run<passes_on>(options_of(true)));
}

TEST_CASE("a trial that asks for an impossible helper fails alone", "[tune][fault][cluster]") {
  const bool in_process = GENERATE(false, true);
  const auto cluster = init(InitOptions{.cpus = 2, .gpus = 0});
  const auto results = tune::run<asks_for_too_much>({.space = {{"index", tune::grid({0, 1, 2, 3})}},
                                                     .metric = "loss",
                                                     .show = tune::Show::None,
                                                     .in_process = in_process});
  REQUIRE(results.trials().size() == 4);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ' ' << trial.error);
    CHECK(trial.status == (config.index == 1 ? tune::Status::Errored : tune::Status::Terminated));
    CHECK(trial.restarts == 0);
  }
  CHECK_THAT(results.trials()[1].trial.error, Catch::Contains("gpu"));
}

TEST_CASE("what .sized throws of the cluster is the failure of its trial",
          "[tune][sizes][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 2, .gpus = 0});
  const auto results = tune::run<asks_for_too_much>(
      {.space = {{"index", tune::grid({0, 2, 3, 4})}},
       .metric = "loss",
       .sized =
           [](const Config& config) {
             if (config.index == 2) raise({.kind = Kind::Impossible, .message = "asked itself"});
             if (config.index == 3) raise({.kind = Kind::Disconnected, .message = "asked itself"});
             return tune::Each{};
           },
       .show = tune::Show::None});
  REQUIRE(results.trials().size() == 4);
  for (const auto& [config, trial, text] : results.trials()) {
    INFO(text << ' ' << trial.error);
    const bool fails = config.index == 2 || config.index == 3;
    CHECK(trial.status == (fails ? tune::Status::Errored : tune::Status::Terminated));
    CHECK(trial.restarts == 0);
    if (!fails) continue;
    CHECK_THAT(trial.error, Catch::Contains("asked itself") && !Catch::Contains("can never hold"));
  }
}

TEST_CASE("a run whose first trials lose their processes in one way is ended",
          "[tune][fault][cluster]") {
  const auto cluster = init(InitOptions{.cpus = 1, .gpus = 0});
  const auto results = tune::run<dies>({.space = {{"index", tune::integer(0, 1000)}},
                                        .trials = 8,
                                        .metric = "loss",
                                        .show = tune::Show::None});
  CHECK_THAT(results.ended_early(),
             Catch::EndsWith("without a report of 'loss', and alike: ended with exit code 3"));
  const auto is_errored = [](const auto& result) {
    return result.trial.status == tune::Status::Errored;
  };
  CHECK(std::ranges::count_if(results.trials(), is_errored) == 5);
  CHECK_THAT(results.summary(), Catch::Contains("\n      and 4 more trials alike\n"));
}

}  // namespace thrown_test
