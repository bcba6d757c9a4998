// Searches whose MLflow server is away, is silent, or refuses what it is told.
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "guard.hpp"
#include "output/append_file.hpp"
#include "output/mlflow/mlflow_tracker.hpp"
#include "support/mlflow_search.hpp"
#include "support/temporary_folder.hpp"

namespace mlflow_trouble_test {

using namespace troupe;
using namespace troupe::tune;
using namespace std::chrono_literals;
using namespace mlflow_search;
using troupe::test::kGuard;

TEST_CASE("a search goes on without its MLflow server, says so once, and tells it later",
          "[tune][mlflow]") {
  const TemporaryFolder folder;
  MlflowStub server(MlflowStub::Listens::Later);
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.mlflow.deadline = 1s;
  const auto results = tune::run<train>(wanted);
  CHECK(results.ended_early() == "");
  const auto& text = results.summary();
  INFO(text);
  CHECK(occurrences(text,
                    "MLflow at " + server.url() + ": Connection refused. The search goes on") == 1);
  CHECK(occurrences(text, "it has not taken all: ") == 1);
  CHECK(occurrences(text, "and 13 runs are behind. tune::resume on ") == 1);
  server.listen();
  const auto again = tune::resume<train>(results.folder(), options(server.url(), ""));
  CHECK(occurrences(again.summary(), "MLflow") == 0);
  check_told(server, results);
}

TEST_CASE(
    "a sweep that has ended is taken up for its MLflow server, as long as that lacks something",
    "[tune][mlflow]") {
  const TemporaryFolder folder;
  MlflowStub server(MlflowStub::Listens::Later);
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.mlflow.deadline = 100ms;
  const auto results = tune::run<train>(wanted);
  auto plan = tune::detail::plan_of(wanted);
  plan.resume = true;
  plan.sweep_file = "sweep.toml";
  plan.mlflow.deadline = kGuard;
  const auto resume = [&] {
    return tune::detail::search_here(plan,
                                     [](const auto&, auto&) { throw std::logic_error("it ran"); });
  };
  server.listen();
  CHECK(resume().folder == results.folder());
  check_told(server, results);
  const auto requests = server.requests();
  CHECK_THROWS_WITH(resume(), Catch::Contains("has come to its end"));
  CHECK(server.requests() == requests);
}

TEST_CASE("a search does not wait for an MLflow server that does not answer", "[tune][mlflow]") {
  const TemporaryFolder folder;
  MlflowStub server;
  server.hold(true);
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.mlflow.deadline = 50ms;
  on_20th_report([&] { return server.requests() > 0; });
  // Comes back although nothing was answered.
  const auto results = tune::run<train>(wanted);
  on_report = {};
  CHECK(results.ended_early() == "");
  CHECK(server.requests() > 0);
  CHECK(server.runs().empty());
  INFO(results.summary());
  CHECK(occurrences(results.summary(), "within ") == 1);
  server.hold(false);
  tune::resume<train>(results.folder(), options(server.url(), ""));
  check_told(server, results);
}

TEST_CASE("a run says after a while that it waits for its MLflow server", "[tune][mlflow]") {
  const Objective loss{"loss", Min};
  const Experiment experiment(
      {.objective = loss}, std::make_unique<RandomSearcher>(SearchSpace{}, 1, 1), fifo()(loss, 1));
  MlflowStub server(MlflowStub::Listens::Later);
  MlflowTracker tracker({.url = server.url(), .experiment = "digits", .deadline = 10min},
                        {.name = "sweep", .objective = loss});
  tracker.see({.kind = Event::Kind::Launched}, Trial{}, std::chrono::system_clock::now());
  std::vector<std::string> said;
  tracker.conclude(experiment, std::chrono::system_clock::now(), [&](const std::string& what) {
    if (said.empty()) server.listen();
    said.push_back(what);
  });
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Catch::Contains(server.url() + " has not taken all in 2.0 s: the run waits "
                                                     "for it for 10 min 0 s in all at most"));
  CHECK(server.run_with("mlflow.runName", "sweep").info.at("status") == "FINISHED");
}

TEST_CASE("a run that MLflow has not all of names the command that sends the rest",
          "[tune][mlflow]") {
  const Objective loss{"loss", Min};
  const Experiment experiment(
      {.objective = loss}, std::make_unique<RandomSearcher>(SearchSpace{}, 1, 1), fifo()(loss, 1));
  const TemporaryFolder storage;
  for (const auto* run : {"run-1", "run-2"}) {
    fs::create_directory(storage.path() / run);
    AppendFile(storage.path() / run / "journal.jsonl").append("{}\n");
  }
  const MlflowStub server(MlflowStub::Listens::Later);
  const auto notices_of = [&](const std::string& run) {
    MlflowTracker tracker({.url = server.url(), .experiment = "digits", .deadline = 1ms},
                          {.folder = storage.path() / run,
                           .name = "sweep",
                           .objective = loss,
                           .sweep_file = "sweep.toml",
                           .storage = storage.path()});
    tracker.see({.kind = Event::Kind::Launched}, Trial{}, {});
    std::string all;
    for (const auto& notice : tracker.conclude(experiment, {}, {})) all += notice + "\n";
    return all;
  };
  CHECK_THAT(notices_of("run-1"),
             Catch::Contains("`troupe tune resume sweep.toml --run " +
                             (storage.path() / "run-1").string() + "` sends it"));
  CHECK_THAT(notices_of("run-2"), Catch::Contains("`troupe tune resume sweep.toml` sends it"));
}

TEST_CASE("a search whose MLflow server comes back tells it all, each report once",
          "[tune][mlflow]") {
  const unsigned status = GENERATE(301, 404, 502, 503);
  const TemporaryFolder folder;
  MlflowStub server;
  server.answer_with(status);
  // The server comes back once it has been seen to be away.
  on_20th_report([&] { return server.refused() > 0; }, [&] { server.answer_with(0); });
  const auto results = tune::run<train>(options(server.url(), folder.path() / "sweep"));
  on_report = {};
  INFO(results.summary());
  const std::map<unsigned, const char*> said{
      {301, "it answers 301 STUBBED: as the test says: is there an MLflow server at this URL? The"},
      {404, "it answers 404 STUBBED: as the test says: is there an MLflow server at this URL? The"},
      {502, "it answers 502. The search goes on"},
      {503, "it answers 503 STUBBED: as the test says. The search goes on"}};
  CHECK(occurrences(results.summary(), said.at(status)) == 1);
  CHECK(occurrences(results.summary(), "it answers again") == 1);
  check_told(server, results);
}

TEST_CASE("what an MLflow server refuses is said once, and counted", "[tune][mlflow]") {
  const TemporaryFolder folder;
  MlflowStub server;
  server.answer_with(400, "log-batch");
  const auto results = tune::run<train>(options(server.url(), folder.path() / "sweep"));
  INFO(results.summary());
  std::size_t values = 1;  // the best one
  for (const auto& trial : results.trials()) values += 2 * trial.trial.history.size();
  CHECK(occurrences(results.summary(), "it refuses metrics, parameters or tags: it answers 400") ==
        1);
  CHECK(occurrences(results.summary(),
                    std::to_string(values) + " values of metrics were refused") == 1);
  for (const auto& [id, run] : server.runs()) CHECK(run.info.at("status") != "RUNNING");
}

TEST_CASE("a metric whose name an MLflow server refuses costs no other value", "[tune][mlflow]") {
  const TemporaryFolder folder;
  MlflowStub server;
  server.refuse_name("odd_x2C nan");
  const auto results = tune::run<train>(options(server.url(), folder.path() / "sweep"));
  INFO(results.summary());
  std::size_t values = 0;
  for (const auto& trial : results.trials()) values += trial.trial.history.size();
  CHECK(occurrences(results.summary(),
                    "it refuses metrics, parameters or tags: it answers 400 "
                    "INVALID_PARAMETER_VALUE: Invalid metric name: odd_x2C nan") == 1);
  CHECK(occurrences(results.summary(),
                    std::to_string(values) + " values of metrics were refused") == 1);
  CHECK(occurrences(results.summary(), "it takes nothing of these names: metric 'odd, nan'") == 1);
  check_told(server, results);
}

TEST_CASE("a server that is no MLflow's, or refuses who asks, is told once and soon asked no more",
          "[tune][mlflow]") {
  struct Case {
    unsigned status;
    std::string location, words;
  };
  const auto [status, location, words] = GENERATE(values<Case>(
      {{301, "http://elsewhere:5000/", "and points to http://elsewhere:5000/: give the URL"},
       {302, "/login", "and points to /login: give the URL of the server itself"},
       {401, "", "MLFLOW_TRACKING_TOKEN, say who asks)"},
       {407, "",
        "(the proxy wants to know who asks: http_proxy or https_proxy says so, as http://USER"},
       {404, "", "is there an MLflow server at this URL?"}}));
  CAPTURE(status);
  const TemporaryFolder folder;
  MlflowStub server;
  server.answer_with(status, "", location);
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.mlflow.deadline = 10min;  // for which it does not wait
  // A proxy whose server is starting would answer so too, but not that somebody may not ask.
  const auto patience = GENERATE(0ms, 700ms);
  const bool is_of_asker = status == 401 || status == 407;
  if (!is_of_asker) wanted.mlflow.patience = patience;
  const auto results = tune::run<train>(wanted);
  INFO(results.summary());
  if (is_of_asker || patience == 0ms)
    CHECK(server.requests() == 1);
  else
    CHECK(server.requests() > 1);
  CHECK(occurrences(results.summary(), "MLflow at " + server.url() +
                                           ": it refuses the experiment: it answers " +
                                           std::to_string(status)) == 1);
  CHECK(occurrences(results.summary(), words) >= 1);
  CHECK(occurrences(results.summary(), "sends it nothing more") == 1);
  CHECK(occurrences(results.summary(), "it answers again") == 0);
  CHECK(occurrences(results.summary(), "were refused. tune::resume on ") == 1);
  // With the right address, which the same one is now, all of it is sent.
  server.answer_with(0);
  tune::resume<train>(results.folder(), options(server.url(), ""));
  check_told(server, results);
}

TEST_CASE("an answer that asks to come again is followed, and one that refuses a trial is not",
          "[tune][mlflow]") {
  const TemporaryFolder folder;
  MlflowStub server;
  server.answer_with(425);
  on_20th_report([&] { return server.refused() > 0; }, [&] { server.answer_with(0); });
  auto results = tune::run<train>(options(server.url(), folder.path() / "passes"));
  on_report = {};
  check_told(server, results);

  MlflowStub strict;
  strict.answer_with(403, "log-batch");
  results = tune::run<train>(options(strict.url(), folder.path() / "strict"));
  INFO(results.summary());
  CHECK(occurrences(results.summary(), "it refuses metrics, parameters or tags: it answers 403") ==
        1);
  strict.answer_with(0);
  tune::resume<train>(results.folder(), options(strict.url(), ""));
  CHECK(strict.run_with("mlflow.runName", "trial 0").metrics.size() ==
        2 * results.trials()[0].trial.history.size());
}

}  // namespace mlflow_trouble_test
