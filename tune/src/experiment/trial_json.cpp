#include "experiment/trial_json.hpp"

#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "experiment/decision_json.hpp"

namespace troupe::tune {
namespace {

Status status_from(const Json& json) {
  const auto name = json.get<std::string>();
  for (std::size_t i = 0; i < kStatuses; ++i) {
    if (to_string(static_cast<Status>(i)) == name) return static_cast<Status>(i);
  }
  throw std::invalid_argument(fmt::format("'{}' is no status of a trial", name));
}

Json state_of(const Takeover& takeover) {
  auto json = to_json(takeover);
  json["own_checkpoint"] = takeover.own_checkpoint;
  json["own_checkpoint_t"] = takeover.own_checkpoint_t;
  return json;
}

Takeover takeover_from(const Json& json) {
  return {.t = json.at("t").get<std::int64_t>(),
          .donor = json.at("from").get<TrialId>(),
          .checkpoint_t = json.at("from_t").get<std::int64_t>(),
          .donor_takeovers = json.at("from_takeovers").get<std::size_t>(),
          .checkpoint = json.at("checkpoint").get<std::string>(),
          .donor_config = configuration_from(json.at("old")),
          .before = configuration_from(json.at("own")),
          .after = configuration_from(json.at("new")),
          .why = json.at("reason").get<std::string>(),
          .own_checkpoint = json.at("own_checkpoint").get<std::string>(),
          .own_checkpoint_t = json.at("own_checkpoint_t").get<std::int64_t>()};
}

}  // namespace

Json to_json(const Trial& trial) {
  Json json{{"trial", trial.id},
            {"status", to_string(trial.status)},
            {"config", to_json(trial.config)},
            {"best", trial.best ? to_json(*trial.best) : Json()},
            {"best_t", trial.best_t},
            {"best_checkpoint", trial.best_checkpoint},
            {"best_checkpoint_t", trial.best_checkpoint_t},
            {"t", trial.t},
            {"last", to_json(trial.last)},
            {"reason", trial.reason},
            {"takeovers", Json::array()},
            {"pauses", trial.pauses},
            {"failures", trial.failures},
            {"error", trial.error},
            {"restarts", trial.restarts},
            {"restart_reason", trial.restart_reason},
            {"checkpoint", trial.checkpoint},
            {"checkpoint_t", trial.checkpoint_t},
            {"started", trial.started.count()},
            {"ended", trial.ended.count()}};
  if (!trial.values.empty()) {
    auto values = Json::array();
    for (const double value : trial.values) values.push_back(to_json(value));
    json["values"] = std::move(values);
    json["values_t"] = trial.values_t;
    if (trial.violation != 0) json["violation"] = to_json(trial.violation);
  }
  if (!trial.takeovers.empty()) json["best_config"] = to_json(config_of_best(trial));
  for (const auto& takeover : trial.takeovers) json["takeovers"].push_back(to_json(takeover));
  if (trial.in_flight) json["in_flight"] = trial.launch;
  if (trial.workers > 0) json["workers"] = trial.workers;
  if (trial.stopping) json["stopping"] = true;
  if (trial.replaced) json["replaced"] = true;
  return json;
}

Json state_of(const Trial& trial) {
  auto json = to_json(trial);
  json.erase("best_config");  // told by the takeovers
  json["in_flight"] = trial.in_flight;
  json["launch"] = trial.launch;
  json["attempt"] = trial.attempt;
  json["outcome"] = to_string(trial.outcome);
  json["has_started"] = trial.has_started;
  json["attempt_began"] = trial.attempt_began.count();
  json["ended_with_run"] = trial.ended_with_run;
  json["launched_from"] = trial.launched_from;
  json["fruitless_restarts"] = trial.fruitless_restarts;
  json["retried"] = trial.retried;
  json["repeating"] = trial.repeating;
  json["best_takeovers"] = trial.best_takeovers;
  json["ended_before_best"] = trial.ended_before_best;
  if (!trial.earlier.empty()) {
    auto earlier = Json::array();
    for (const auto& [checkpoint, t, takeovers] : trial.earlier)
      earlier.push_back({checkpoint, t, takeovers});
    json["earlier"] = std::move(earlier);
  }
  if (!trial.values.empty()) json["values_takeovers"] = trial.values_takeovers;
  auto takeovers = Json::array();
  for (const auto& takeover : trial.takeovers) takeovers.push_back(state_of(takeover));
  json["takeovers"] = std::move(takeovers);
  auto history = Json::array();
  for (const auto& [t, value] : trial.history) history.push_back({t, to_json(value)});
  json["history"] = std::move(history);
  return json;
}

Trial trial_from(const Json& state) {
  Trial trial{.id = state.at("trial").get<TrialId>(),
              .config = configuration_from(state.at("config")),
              .status = status_from(state.at("status")),
              .in_flight = state.at("in_flight").get<bool>(),
              .attempt = state.at("attempt").get<int>(),
              .launch = state.at("launch").get<std::uint64_t>(),
              .stopping = state.value("stopping", false),
              .outcome = status_from(state.at("outcome")),
              .has_started = state.at("has_started").get<bool>(),
              .ended_with_run = state.at("ended_with_run").get<bool>(),
              .replaced = state.value("replaced", false),
              .retried = state.at("retried").get<bool>(),
              .repeating = state.at("repeating").get<bool>(),
              .failures = state.at("failures").get<int>(),
              .restarts = state.at("restarts").get<int>(),
              .fruitless_restarts = state.value("fruitless_restarts", 0),
              .pauses = state.at("pauses").get<int>(),
              .t = state.at("t").get<std::int64_t>(),
              .last = metrics_from(state.at("last")),
              .best_t = state.at("best_t").get<std::int64_t>(),
              .ended_before_best = state.value("ended_before_best", std::size_t{0}),
              .best_takeovers = state.at("best_takeovers").get<std::size_t>(),
              .best_checkpoint = state.at("best_checkpoint").get<std::string>(),
              .best_checkpoint_t = state.at("best_checkpoint_t").get<std::int64_t>(),
              .reason = state.at("reason").get<std::string>(),
              .error = state.at("error").get<std::string>(),
              .restart_reason = state.at("restart_reason").get<std::string>(),
              .checkpoint = state.at("checkpoint").get<std::string>(),
              .checkpoint_t = state.at("checkpoint_t").get<std::int64_t>(),
              .workers = state.value("workers", 0),
              .launched_from = state.at("launched_from").get<std::string>(),
              .started = Seconds(state.at("started").get<double>()),
              .attempt_began = Seconds(state.at("attempt_began").get<double>()),
              .ended = Seconds(state.at("ended").get<double>())};
  if (!state.at("best").is_null()) trial.best = number_from(state.at("best"));
  if (state.contains("values")) {
    for (const auto& value : state.at("values")) trial.values.push_back(number_from(value));
    trial.values_t = state.at("values_t").get<std::int64_t>();
    if (state.contains("violation")) trial.violation = number_from(state.at("violation"));
    trial.values_takeovers = state.at("values_takeovers").get<std::size_t>();
  }
  for (const auto& each : state.at("history"))
    trial.history.push_back({each.at(0).get<std::int64_t>(), number_from(each.at(1))});
  for (const auto& each : state.value("earlier", Json::array())) {
    trial.earlier.push_back({each.at(0).get<std::string>(), each.at(1).get<std::int64_t>(),
                             each.at(2).get<std::size_t>()});
  }
  for (const auto& each : state.at("takeovers")) trial.takeovers.push_back(takeover_from(each));
  return trial;
}

}  // namespace troupe::tune
