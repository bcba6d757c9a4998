// Trials that are tried again from their start while the run ends: a step's value is the step's.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/mlflow_stub.hpp"
#include "support/temporary_folder.hpp"
#include "text/json.hpp"

namespace repeated_steps_test {

namespace tune = troupe::tune;
using namespace troupe::tune;
using troupe::Verdict;
namespace fs = std::filesystem;

namespace {

constexpr int kSteps = 7;
int attempts = 0;
bool ends_in_second = false;  // Ctrl-C before the second attempt's second report

struct Config {
  double lr = 0.5;
};

/// The loss of step t is 1/t, its size 100 - t. The first attempt fails after its fifth report.
void trains(Context& ctx, const Config&) {
  const int attempt = ++attempts;
  for (int step = 1; step <= kSteps; ++step) {
    if (attempt == 1 && step == 6) throw std::runtime_error("the disk is away");
    if (ends_in_second && attempt == 2 && step == 2) std::raise(SIGINT);
    if (ctx.report({{"loss", 1.0 / step}, {"size", 100.0 - step}}) == Verdict::Stop) return;
  }
}

Results<Config> run(const fs::path& storage, const std::string& mlflow, bool ends) {
  ends_in_second = ends;
  return tune::run<trains>({.space = {{"lr", uniform(0, 1)}},
                            .trials = 1,
                            .objectives = {{"loss", Min}, {"size", Min}},
                            .storage = storage,
                            .resume = true,
                            .mlflow = {.url = mlflow, .experiment = "steps"},
                            .max_failures = 2,
                            .show = Show::None,
                            .in_process = true});
}

void check_steps(const Results<Config>& results, const MlflowStub& server, std::int64_t last) {
  const auto& trial = results.trials().at(0).trial;
  CHECK(trial.t == last);
  CHECK(trial.values_t == last);
  CHECK(trial.values ==
        std::vector{1.0 / static_cast<double>(last), 100 - static_cast<double>(last)});
  CHECK(trial.best_t == last);
  REQUIRE(results.pareto_front().size() == 1);
  CHECK_THAT(results.pareto_front()[0].text, Catch::Contains("size " + std::to_string(100 - last) +
                                                             " at t=" + std::to_string(last)));

  std::int64_t t = 0;
  std::ifstream lines(results.folder() / "reports.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto json = parse(line, "a report");
    CHECK(json.at("t") == ++t);
    CHECK(json.at("metrics").at("loss") == 1.0 / static_cast<double>(t));
  }
  CHECK(t == last);
  t = 0;
  std::ifstream rows(results.folder() / "reports.csv");
  std::string row;
  std::getline(rows, row);
  CHECK_THAT(row,
             Catch::StartsWith("trial,attempt,t,time_s,decision,rung,reason,config/lr,loss,size"));
  while (std::getline(rows, row)) {
    ++t;
    CHECK_THAT(row, Catch::Contains("," + std::to_string(t) + ",") &&
                        Catch::Contains("," + std::to_string(100 - t)));
  }
  CHECK(t == last);
  t = 0;
  for (const auto& metric : server.run_with("troupe.trial", "0").metrics) {
    if (metric.at("key") != "loss") continue;
    CHECK(metric.at("step") == ++t);
    CHECK(metric.at("value") == 1.0 / static_cast<double>(t));
  }
  CHECK(t == last);
}

}  // namespace

TEST_CASE("each step of a trial that is tried again has its own value, once, wherever it stands",
          "[tune][reports]") {
  const TemporaryFolder folder;
  const MlflowStub server;
  attempts = 0;
  const auto interrupted = run(folder.path(), server.url(), true);
  REQUIRE(interrupted.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  CHECK(attempts == 2);
  check_steps(interrupted, server, 5);
  CHECK(interrupted.trials()[0].trial.status == Status::Stopped);

  const auto whole = run(folder.path(), server.url(), false);
  REQUIRE(whole.folder() == interrupted.folder());
  CHECK(whole.ended_early().empty());
  check_steps(whole, server, kSteps);
}

}  // namespace repeated_steps_test
