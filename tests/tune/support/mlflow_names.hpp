// A search whose metrics and fields have names that are hard for an MLflow server.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "guard.hpp"
#include "output/mlflow/mlflow_tracker.hpp"

namespace mlflow_search {

using namespace troupe;
using namespace troupe::tune;
using troupe::test::kGuard;

/// Names that are easily taken for each other, or refused.
inline Metrics hard_names() {
  Metrics metrics{{"a,b", 0},  {"a;b", 0},      {"a_b", 0},    {"a_x2Cb", 0}, {"a//b", 0},
                  {"a/b/", 0}, {"/a", 0},       {"a/../b", 0}, {"..", 0},     {".", 0},
                  {"100%", 0}, {"\xc3\xa4", 0}, {"\xff", 0},   {"\xfe", 0},   {" a", 0}};
  for (const auto* end : {"a", "b"}) metrics.emplace_back((std::string(300, 'x') + end).c_str(), 0);
  for (std::size_t i = 0; i < metrics.size(); ++i) metrics[i].value = static_cast<double>(i);
  return metrics;
}

/// A search of one trial, which has these as metrics and as fields.
inline void tell_hard_names(const std::string& url) {
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

}  // namespace mlflow_search
