// What an MLflow server is told of a search, by a stub that holds to the documented API.
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "guard.hpp"
#include "output/mlflow/mlflow_tracker.hpp"
#include "support/mlflow_names.hpp"
#include "support/mlflow_search.hpp"
#include "support/temporary_folder.hpp"

namespace mlflow_test {

using namespace troupe;
using namespace troupe::tune;
using namespace std::chrono_literals;
using namespace mlflow_search;
using troupe::test::kGuard;

TEST_CASE("the run of a search says which searcher and scheduler it has, with their options",
          "[tune][mlflow]") {
  using Params = std::map<std::string, std::string>;
  const auto params_of = [](const tune::SearcherFactory& searcher,
                            const tune::SchedulerFactory& scheduler) {
    MlflowStub server;
    const TemporaryFolder folder;
    auto wanted = options(server.url(), folder.path());
    wanted.searcher = searcher;
    wanted.scheduler = scheduler;
    wanted.first = {{.lr = 0.5, .kind = "plain", .size = kLarge}};
    tune::run<train>(wanted);
    Params found;
    const auto run = server.run_with("mlflow.runName", folder.path().filename() / "run-1");
    for (const auto& [name, value] : run.params) {
      if (name.starts_with("searcher") || name.starts_with("scheduler")) found[name] = value;
    }
    return found;
  };
  const auto names_of = [](const Params& params) {
    std::vector<std::string> names;
    for (const auto& [name, value] : params) names.push_back(name);
    return names;
  };
  const auto nested = params_of(tune::repeated(tune::tpe({.startup_trials = 3}), 2),
                                tune::median_stopping({.grace = 2}));
  CHECK(nested.at("searcher") == "repeated");
  CHECK(nested.at("searcher/times") == "2");
  CHECK(nested.at("searcher/search") == "tpe");
  CHECK(nested.at("searcher/search/startup_trials") == "3");
  CHECK(nested.at("scheduler") == "median stopping");
  CHECK(nested.at("scheduler/grace") == "2");
  // Only what was asked for, nothing of what a search comes to know.
  const auto plain = params_of(tune::cmaes({.population = 4, .random_choices = true}),
                               tune::asha({.max_t = 9, .eta = 3, .brackets = 2}));
  CHECK(plain.at("scheduler/brackets") == "2");
  CHECK(names_of(plain) ==
        std::vector<std::string>{"scheduler", "scheduler/brackets", "scheduler/eta",
                                 "scheduler/grace", "scheduler/max_t", "searcher",
                                 "searcher/population", "searcher/random_choices",
                                 "searcher/restart", "searcher/sigma"});
}

TEST_CASE("an MLflow server is told of a search and of each trial", "[tune][mlflow]") {
  const TemporaryFolder folder;
  const MlflowStub server;
  const auto results = tune::run<train>(options(server.url(), folder.path() / "sweep"));
  INFO(results.summary());
  CHECK(occurrences(results.summary(), "MLflow") == 0);
  check_told(server, results);
}

TEST_CASE("an MLflow server is told who asks as the environment says", "[tune][mlflow]") {
  const TemporaryFolder folder;
  const MlflowStub server;
  ::setenv("MLFLOW_TRACKING_TOKEN", "secret", 1);
  tune::run<train>(options(server.url(), folder.path()));
  ::setenv("MLFLOW_TRACKING_USERNAME", "me", 1);
  ::setenv("MLFLOW_TRACKING_PASSWORD", "secret", 1);
  tune::run<train>(options(server.url(), folder.path()));
  for (const auto* name :
       {"MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"})
    ::unsetenv(name);
  CHECK(server.authorizations() == std::set<std::string>{"Basic bWU6c2VjcmV0", "Bearer secret"});
}

TEST_CASE("two metrics and two parameters are two in MLflow", "[tune][mlflow]") {
  const MlflowStub server;
  tell_hard_names(server.url());
  const auto run = server.run_with("troupe.trial", "0");
  std::map<std::string, double> told;
  for (const auto& metric : run.metrics)
    CHECK(told.emplace(metric.at("key"), metric.at("value")).second);
  CHECK(told.size() == hard_names().size());
  CHECK(run.params.size() == hard_names().size());
}

TEST_CASE("a run that was interrupted goes on in the same MLflow runs", "[tune][mlflow]") {
  const std::size_t snapshot_after = GENERATE(1, 2500, 1'000'000);
  CAPTURE(snapshot_after);
  const TemporaryFolder folder;
  MlflowStub server;
  reports_to_interrupt = 15;
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.snapshot_after = snapshot_after;
  const auto interrupted = tune::run<train>(wanted);
  REQUIRE(interrupted.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  const auto before = server.runs();
  REQUIRE(before.size() > 2);
  std::size_t killed = 0, unfinished = 0;
  for (const auto& [id, run] : before) {
    killed += run.info.at("status") == "KILLED" ? 1 : 0;
    if (!run.tags.contains("troupe.trial")) continue;
    const auto& trial = interrupted.trials()[std::stoul(run.tags.at("troupe.trial"))].trial;
    CHECK(run.tags.at("troupe.status") == ending_of(trial));
    unfinished += trial.is_unfinished() ? 1 : 0;
  }
  CHECK(killed == 2);  // the search and the trial that was under way
  CHECK(unfinished == 1);
  wanted.resume = true;
  const auto results = tune::run<train>(wanted);
  REQUIRE(results.folder() == interrupted.folder());
  for (const auto& [id, run] : before) CHECK(server.runs().contains(id));
  check_told(server, results);
}

TEST_CASE("a trial that never began is killed in MLflow, and is called unstarted",
          "[tune][mlflow]") {
  const Objective loss{"loss", Min};
  Experiment experiment({.objective = loss}, std::make_unique<RandomSearcher>(SearchSpace{}, 1, 1),
                        fifo()(loss, 1));
  const MlflowStub server;
  MlflowTracker tracker({.url = server.url(), .experiment = "digits", .deadline = kGuard},
                        {.name = "sweep", .objective = loss});
  const auto now = std::chrono::system_clock::now();
  experiment.observe([&](const Event& event, const Trial* trial) {
    if (trial) tracker.see(event, *trial, now);
  });
  experiment.next(Seconds(0));
  experiment.close("enough", Seconds(1));
  experiment.failed(0, "it was ended", Fault::System, Seconds(1));
  CHECK(tracker.conclude(experiment, now, {}) == Tracker::Notices{});
  const auto run = server.run_with("troupe.trial", "0");
  CHECK(run.info.at("status") == "KILLED");
  CHECK(run.tags.at("troupe.status") == "unstarted");
}

TEST_CASE("a search that breaks off has failed in MLflow", "[tune][mlflow]") {
  const MlflowStub server;
  {
    MlflowTracker tracker({.url = server.url()}, {.name = "broken", .objective = {"loss", Min}});
    const Trial trial{.id = 0, .config = {{"lr", 0.5}}, .in_flight = true};
    tracker.see({.kind = Event::Kind::Launched, .trial = 0}, trial,
                std::chrono::system_clock::now());
  }
  CHECK(server.run_with("mlflow.runName", "broken").info.at("status") == "FAILED");
  CHECK(server.run_with("mlflow.runName", "trial 0").params.at("lr") == "0.5");
}

TEST_CASE("an MLflow server that cannot be is refused before anything is made", "[tune][mlflow]") {
  const TemporaryFolder folder;
  const auto storage = folder.path() / "sweep";
  auto wanted = options("ftp://tracking", storage);
  CHECK_THROWS_WITH(tune::run<train>(wanted), Catch::Contains("begin with http:// or https://"));
  wanted.mlflow = {.url = "http://tracking", .experiment = ""};
  CHECK_THROWS_WITH(tune::run<train>(wanted), Catch::Contains(".mlflow.experiment is empty"));
  wanted.mlflow = {.url = "http://tracking", .most_waiting = 0};
  CHECK_THROWS_WITH(tune::run<train>(wanted), Catch::Contains(".most_waiting 0, at least 1"));
  CHECK_FALSE(fs::exists(storage));
}

}  // namespace mlflow_test
