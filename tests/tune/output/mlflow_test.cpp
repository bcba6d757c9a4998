// Searches that tell an MLflow server: a stub that holds to the documented API, and a real one
// where there is one.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "guard.hpp"
#include "output/append_file.hpp"
#include "output/mlflow/http_client.hpp"
#include "output/mlflow/mlflow_tracker.hpp"
#include "support/mlflow_stub.hpp"
#include "support/python.hpp"
#include "support/temporary_folder.hpp"

namespace mlflow_test {

using namespace troupe;
using namespace troupe::tune;
using namespace std::chrono_literals;
using troupe::test::kGuard;
namespace fs = std::filesystem;

namespace {

struct Config {
  double lr = 0.1;
  std::string kind = "plain";
  std::int64_t size = 0;
};

constexpr std::int64_t kLarge = std::int64_t{1} << 60;  // beyond which no double holds all integers

int reports_to_interrupt = 0;  // 0: none
std::function<void()> on_report;

void train(tune::Context& ctx, const Config& config) {
  if (config.kind == "fails") throw std::runtime_error("it fails");
  for (int t = 1; t <= 9; ++t) {
    if (on_report) on_report();
    if (reports_to_interrupt > 0 && --reports_to_interrupt == 0) ::raise(SIGINT);
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    if (ctx.report({{"loss", config.lr + 1.0 / t}, {"odd, nan", t % 2 == 0 ? 1.0 : nan}},
                   "checkpoint-" + std::to_string(t)) == Verdict::Stop)
      return;
  }
}

tune::Options<Config> options(const std::string& url, const fs::path& storage) {
  return {.space = {{"lr", tune::loguniform(1e-3, 1.0)},
                    {"kind", tune::choice({"plain", "plain too", "fails"})},
                    {"size", tune::integer(kLarge, kLarge + 7)}},
          .trials = 12,
          .metric = "loss",
          .scheduler = tune::asha({.max_t = 9, .eta = 3}),
          .storage = storage.string(),
          .mlflow = {.url = url, .experiment = "digits"},
          .seed = 4,
          .show = tune::Show::None,
          .in_process = true};
}

/// Every report of the run, each once and in order, and how each trial ended.
void check_told(const MlflowStub& server, const tune::Results<Config>& results) {
  REQUIRE(server.experiments().size() == 1);
  REQUIRE(server.runs().size() == results.trials().size() + 1);
  const auto parent = server.run_with(
      "mlflow.runName", results.folder().parent_path().filename() / results.folder().filename());
  CHECK(parent.info.at("status") == "FINISHED");
  CHECK(parent.params.at("metric") == "loss");
  CHECK(parent.params.at("space/lr") == "loguniform(0.001, 1)");
  CHECK(parent.params.at("searcher") == "random");
  CHECK(parent.params.at("scheduler") == "asha");
  CHECK(parent.params.at("scheduler/max_t") == "9");
  CHECK(parent.tags.at("troupe.best_trial") == std::to_string(results.best().trial.id));
  CHECK(parent.tags.at("troupe.best_checkpoint") == results.best().checkpoint());
  CHECK(parent.tags.at("troupe.best_run_id") ==
        server.run_with("troupe.trial", parent.tags.at("troupe.best_trial")).info.at("run_id"));
  REQUIRE_FALSE(parent.metrics.empty());
  CHECK(parent.metrics.back().at("key") == "loss");
  CHECK(parent.metrics.back().at("value") == results.best().value());
  for (const auto& [config, trial, text] : results.trials()) {
    CAPTURE(trial.id);
    const auto run = server.run_with("troupe.trial", std::to_string(trial.id));
    CHECK(run.tags.at("mlflow.parentRunId") == parent.info.at("run_id"));
    CHECK(run.tags.at("mlflow.runName") == "trial " + std::to_string(trial.id));
    CHECK(run.info.at("status") == (trial.status == Status::Errored ? "FAILED" : "FINISHED"));
    CHECK(run.info.at("end_time") >= run.info.at("start_time"));
    CHECK(std::stod(run.params.at("lr")) == config.lr);
    CHECK(run.params.at("kind") == config.kind);
    CHECK(run.params.at("size") == std::to_string(config.size));
    CHECK(run.tags.contains("troupe.error") == (trial.status == Status::Errored));
    std::vector<Observation> losses;
    std::int64_t before = 0;
    for (const auto& metric : run.metrics) {
      if (metric.at("key") == "odd_x2C nan" && metric.at("step").get<int>() % 2 == 1)
        CHECK(metric.at("value") == "NaN");
      if (metric.at("key") == "loss") losses.push_back({metric.at("step"), metric.at("value")});
      CHECK(metric.at("timestamp").get<std::int64_t>() >= before);
      before = metric.at("timestamp");
    }
    REQUIRE(losses.size() == trial.history.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CHECK(losses[i].t == trial.history[i].t);
      CHECK(losses[i].value == trial.history[i].value);
    }
  }
}

/// Names that are easily taken for each other, or refused.
Metrics hard_names() {
  Metrics metrics{{"a,b", 0},  {"a;b", 0},      {"a_b", 0},    {"a_x2Cb", 0}, {"a//b", 0},
                  {"a/b/", 0}, {"/a", 0},       {"a/../b", 0}, {"..", 0},     {".", 0},
                  {"100%", 0}, {"\xc3\xa4", 0}, {"\xff", 0},   {"\xfe", 0},   {" a", 0}};
  for (const auto* end : {"a", "b"}) metrics.emplace_back((std::string(300, 'x') + end).c_str(), 0);
  for (std::size_t i = 0; i < metrics.size(); ++i) metrics[i].value = static_cast<double>(i);
  return metrics;
}

/// A search of one trial, which has these as metrics and as fields.
void tell_hard_names(const std::string& url) {
  const Objective loss{"loss", Min};
  const Experiment experiment(
      {.objective = loss}, std::make_unique<RandomSearcher>(SearchSpace{}, 1, 1), fifo()(loss, 1));
  MlflowTracker tracker({.url = url, .experiment = "names", .deadline = kGuard},
                        {.name = "names", .objective = loss});
  Trial trial{.id = 0, .in_flight = true};
  for (const auto& metric : hard_names()) trial.config.emplace_back(metric.name, metric.value);
  const auto now = std::chrono::system_clock::now();
  tracker.see({.kind = Event::Kind::Launched, .trial = 0}, trial, now);
  tracker.see({.kind = Event::Kind::Reported, .trial = 0, .t = 1, .metrics = hard_names()}, trial,
              now);
  CHECK(tracker.conclude(experiment, now, {}) == Tracker::Notices{});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Waits there, for a minute at most, until `has_come` is true, and then goes on with `then`.
void on_20th_report(
    std::function<bool()> has_come, std::function<void()> then = [] {}) {
  on_report = [has_come = std::move(has_come), then = std::move(then), reports = 0]() mutable {
    if (++reports != 20) return;
    for (int i = 0; i < 6'000 && !has_come(); ++i) ::usleep(10'000);
    then();
  };
}

}  // namespace

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
  CHECK(count(results.summary(), "MLflow") == 0);
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
  CHECK(count(text, "MLflow at " + server.url() + ": Connection refused. The search goes on") == 1);
  CHECK(count(text, "it has not taken all: ") == 1);
  CHECK(count(text, "and 13 runs are behind. tune::resume on ") == 1);
  server.listen();
  const auto again = tune::resume<train>(results.folder(), options(server.url(), ""));
  CHECK(count(again.summary(), "MLflow") == 0);
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
  CHECK(count(results.summary(), "within ") == 1);
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

TEST_CASE("what is sent to MLflow later is sent by a command that names the run",
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
  CHECK(count(results.summary(), said.at(status)) == 1);
  CHECK(count(results.summary(), "it answers again") == 1);
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
  CHECK(count(results.summary(), "it refuses metrics, parameters or tags: it answers 400") == 1);
  CHECK(count(results.summary(), std::to_string(values) + " values of metrics were refused") == 1);
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
  CHECK(count(results.summary(),
              "it refuses metrics, parameters or tags: it answers 400 "
              "INVALID_PARAMETER_VALUE: Invalid metric name: odd_x2C nan") == 1);
  CHECK(count(results.summary(), std::to_string(values) + " values of metrics were refused") == 1);
  CHECK(count(results.summary(), "it takes nothing of these names: metric 'odd, nan'") == 1);
  check_told(server, results);
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
       {404, "", "is there an MLflow server at this URL?"}}));
  CAPTURE(status);
  const TemporaryFolder folder;
  MlflowStub server;
  server.answer_with(status, "", location);
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.mlflow.deadline = 10min;  // for which it does not wait
  // A proxy whose server is starting would answer so too, but not that somebody may not ask.
  const auto patience = GENERATE(0ms, 700ms);
  if (status != 401) wanted.mlflow.patience = patience;
  const auto results = tune::run<train>(wanted);
  INFO(results.summary());
  if (status == 401 || patience == 0ms)
    CHECK(server.requests() == 1);
  else
    CHECK(server.requests() > 1);
  CHECK(count(results.summary(), "MLflow at " + server.url() +
                                     ": it refuses the experiment: it answers " +
                                     std::to_string(status)) == 1);
  CHECK(count(results.summary(), words) >= 1);
  CHECK(count(results.summary(), "sends it nothing more") == 1);
  CHECK(count(results.summary(), "it answers again") == 0);
  CHECK(count(results.summary(), "were refused. tune::resume on ") == 1);
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
  CHECK(count(results.summary(), "it refuses metrics, parameters or tags: it answers 403") == 1);
  strict.answer_with(0);
  tune::resume<train>(results.folder(), options(strict.url(), ""));
  CHECK(strict.run_with("mlflow.runName", "trial 0").metrics.size() ==
        2 * results.trials()[0].trial.history.size());
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

TEST_CASE("a connection that the server closed between two requests is made anew",
          "[tune][mlflow]") {
  MlflowStub server;
  const auto url = ServerUrl::parse("http://localhost:" + std::to_string(server.port()));
  boost::asio::io_context io;
  HttpClient client(io, url, "");
  const auto made = [&](const std::string& name) {
    unsigned status = 0;
    client.send("/api/2.0/mlflow/experiments/create", R"({"name":")" + name + "\"}", kGuard,
                [&](const HttpAnswer& answer) { status = answer.status; });
    io.restart();
    io.run();
    return status;
  };
  CHECK(made("one") == 200);
  CHECK(made("two") == 200);
  server.close_connections();
  CHECK(made("three") == 200);
  CHECK(server.experiments().size() == 3);
}

TEST_CASE("an MLflow server that cannot be is refused before anything is made", "[tune][mlflow]") {
  const TemporaryFolder folder;
  const auto storage = folder.path() / "sweep";
  auto wanted = options("https://tracking", storage);
  CHECK_THROWS_WITH(tune::run<train>(wanted), Catch::Contains("TLS is not spoken"));
  wanted.mlflow = {.url = "http://tracking", .experiment = ""};
  CHECK_THROWS_WITH(tune::run<train>(wanted), Catch::Contains(".mlflow.experiment is empty"));
  wanted.mlflow = {.url = "http://tracking", .most_waiting = 0};
  CHECK_THROWS_WITH(tune::run<train>(wanted), Catch::Contains(".most_waiting 0, at least 1"));
  CHECK_FALSE(fs::exists(storage));
}

namespace {

std::string printed_by(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    output.append(part.data(), size);
  pclose(pipe);
  return output.substr(0, output.find('\n'));
}

/// `mlflow server` in this folder, until this object goes.
class RealServer {
 public:
  RealServer(const std::string& program, const fs::path& folder, unsigned short port)
      : url_{"http://127.0.0.1:" + std::to_string(port)} {
    pid_ = std::stoi(printed_by("cd '" + folder.string() + "' && { setsid '" + program +
                                "' server --host 127.0.0.1 --port " + std::to_string(port) +
                                " --workers 1 --backend-store-uri sqlite:///runs.db > server.log "
                                "2>&1 & echo $!; }"));
  }
  ~RealServer() { ::kill(-pid_, SIGKILL); }

  const std::string& url() const { return url_; }
  bool answers_within(std::chrono::seconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      boost::asio::io_context io;
      HttpClient client(io, server_, "");
      unsigned status = 0;
      client.send("/health", "", kGuard, [&](const HttpAnswer& answer) { status = answer.status; });
      io.run();
      if (status == 200) return true;
      std::this_thread::sleep_for(100ms);
    }
    return false;
  }

 private:
  std::string url_;
  ServerUrl server_ = ServerUrl::parse(url_);
  pid_t pid_ = 0;
};

constexpr auto* kJudge = R"(
import json, math, os
from mlflow.tracking import MlflowClient
client = MlflowClient(os.environ['URL'])
experiment = client.get_experiment_by_name('digits')
runs = {run.data.tags.get('troupe.trial', 'parent'): run for run in client.search_runs([experiment.experiment_id], max_results=1000)}
summary = json.load(open('summary.json'))
reports = [json.loads(line) for line in open('reports.jsonl')]
parent = runs.pop('parent')
assert parent.info.status == 'FINISHED' and parent.info.run_name == 'sweep/run-1', parent
assert parent.data.params['space/lr'] == 'loguniform(0.001, 1)', parent.data.params
assert parent.data.metrics['loss'] == summary['best']['best'], parent.data.metrics
assert parent.data.tags['troupe.best_trial'] == str(summary['best']['trial'])
assert parent.data.tags['troupe.best_run_id'] == runs[str(summary['best']['trial'])].info.run_id
assert len(runs) == len(summary['trials']) == 12
told = 0
for trial in summary['trials']:
    run = runs[str(trial['trial'])]
    assert run.data.tags['mlflow.parentRunId'] == parent.info.run_id
    assert run.info.run_name == 'trial %d' % trial['trial']
    assert run.info.status == ('FAILED' if trial['status'] == 'errored' else 'FINISHED'), run.info
    assert run.info.end_time >= run.info.start_time
    assert {name: str(value) for name, value in trial['config'].items() if name != 'lr'} == {'kind': run.data.params['kind']}
    assert float(run.data.params['lr']) == trial['config']['lr']
    for name, there in (('loss', 'loss'), ('odd, nan', 'odd_x2C nan')):
        own = [(r['t'], float(r['metrics'][name])) for r in reports if r['trial'] == trial['trial']]
        found = sorted((m.step, m.value) for m in client.get_metric_history(run.info.run_id, there)) if own else []
        assert len(own) == len(found), (own, found)
        for (t, value), (step, metric) in zip(own, found):
            assert t == step and (value == metric or math.isnan(value) and math.isnan(metric)), (own, found)
        told += len(own)
print('the same', told > 50)
)";

constexpr auto* kHardNames = R"(
import os
from mlflow.tracking import MlflowClient
client = MlflowClient(os.environ['URL'])
experiment = client.get_experiment_by_name('names')
run, = [run for run in client.search_runs([experiment.experiment_id]) if 'troupe.trial' in run.data.tags]
print(sorted(run.data.metrics.values()) == [float(i) for i in range(len(run.data.metrics))],
      {name: float(value) for name, value in run.data.params.items()} == run.data.metrics, len(run.data.metrics))
)";

}  // namespace

TEST_CASE("a real MLflow server has what a search reported, over an interruption too",
          "[tune][mlflow]") {
  const auto program = printed_by("command -v mlflow");
  if (program.empty()) {
    std::cout << "skipped: there is no mlflow in PATH; pip install mlflow brings it\n";
    return;
  }
  const TemporaryFolder folder;
  const RealServer server(program, folder.path(), MlflowStub().port());
  REQUIRE(server.answers_within(120s));
  reports_to_interrupt = 15;
  auto wanted = options(server.url(), folder.path() / "sweep");
  wanted.mlflow.deadline = kGuard;
  const auto interrupted = tune::run<train>(wanted);
  REQUIRE(interrupted.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  wanted.resume = true;
  const auto results = tune::run<train>(wanted);
  INFO(results.summary());
  CHECK(count(results.summary(), "MLflow") == 0);
  ::setenv("URL", server.url().c_str(), 1);
  const auto interpreter = fs::canonical(program).parent_path() / "python";
  CHECK(python(results.folder(), kJudge, interpreter.string()) == "the same True\n");

  tell_hard_names(server.url());
  CHECK(python(folder.path(), kHardNames, interpreter.string()) ==
        "True True " + std::to_string(hard_names().size()) + "\n");
}

}  // namespace mlflow_test
