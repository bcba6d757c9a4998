// A search that an MLflow server is told of, and what the server has to have of it.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "support/mlflow_stub.hpp"

namespace mlflow_search {

using namespace troupe;
using namespace troupe::tune;
namespace fs = std::filesystem;

struct Config {
  double lr = 0.1;
  std::string kind = "plain";
  std::int64_t size = 0;
};

inline constexpr std::int64_t kLarge = std::int64_t{1}
                                       << 60;  // beyond which no double holds all integers

inline int reports_to_interrupt = 0;  // 0: none
inline std::function<void()> on_report;

inline void train(tune::Context& ctx, const Config& config) {
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

inline tune::Options<Config> options(const std::string& url, const fs::path& storage) {
  return {.space = {{"lr", tune::loguniform(1e-3, 1.0)},
                    {"kind", tune::choice({"plain", "plain too", "fails"})},
                    {"size", tune::integer(kLarge, kLarge + 7)}},
          .trials = 12,
          .metric = "loss",
          .scheduler = tune::asha({.max_t = 9, .eta = 3}),
          .storage = storage,
          .mlflow = {.url = url, .experiment = "digits"},
          .seed = 4,
          .show = tune::Show::None,
          .in_process = true};
}

/// Every report of the run, each once and in order, and how each trial ended.
inline void check_told(const MlflowStub& server, const tune::Results<Config>& results) {
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

inline std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Waits there, for a minute at most, until `has_come` is true, and then goes on with `then`.
inline void on_20th_report(
    std::function<bool()> has_come, std::function<void()> then = [] {}) {
  on_report = [has_come = std::move(has_come), then = std::move(then), reports = 0]() mutable {
    if (++reports != 20) return;
    for (int i = 0; i < 6'000 && !has_come(); ++i) ::usleep(10'000);
    then();
  };
}

}  // namespace mlflow_search
