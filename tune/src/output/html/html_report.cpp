#include "output/html/html_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <troupe/tune/lineage.hpp>

#include "experiment/decision_json.hpp"
#include "experiment/journal.hpp"
#include "importance/importance.hpp"
#include "objectives/front.hpp"
#include "output/html/parts.hpp"
#include "output/overview.hpp"
#include "text/names.hpp"

namespace troupe::tune {
namespace {

constexpr std::size_t kMostPoints = 200'000;  // of all learning curves

/// Browsers read JSON, which has no infinity: what is not finite is null there.
Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

Json field_json(const Dimension& field) {
  Json json{{"name", field.name}};
  const auto range = field.domain.range();
  json["log"] = range && range->is_log;
  if (range) return json;
  auto& values = json["values"] = Json::array();
  for (const auto& value : field.domain.values()) values.push_back(to_json(value));
  return json;
}

/// Every so many-th report, and the last one.
Json curve_json(const Trial& trial, std::size_t most) {
  Json curve = Json::array();
  const auto& history = trial.history;
  const auto step = std::max<std::size_t>(1, history.size() / std::max<std::size_t>(most, 2));
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (i % step != 0 && i + 1 != history.size()) continue;
    curve.push_back(Json::array({history[i].t, number(history[i].value)}));
  }
  return curve;
}

Json takeovers_json(const Trial& trial) {
  Json all = Json::array();
  for (const auto& takeover : trial.takeovers) {
    if (takeover.donor == trial.id) continue;
    all.push_back(
        {{"t", takeover.t}, {"donor", takeover.donor}, {"donor_t", takeover.checkpoint_t}});
  }
  return all;
}

Json values_json(const Trial& trial) {
  Json values = Json::array();
  for (const double value : trial.values) values.push_back(number(value));
  return values;
}

/// The values of a configuration that a browser's numbers, which are doubles, do not hold.
Json digits_json(const Json& config) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  Json digits = Json::object();
  for (const auto& [name, value] : config.items()) {
    const bool is_held =
        !value.is_number_integer() || (value <= Json(kExact) && value >= Json(-kExact));
    if (!is_held) digits[name] = value.dump();
  }
  return digits;
}

Json trial_json(const Trial& trial, const RunRecord& record, std::size_t most_points,
                bool is_abandoned) {
  const auto config = to_json(config_of_best(trial));
  return {{"id", trial.id},
          {"status", status_text(trial, is_abandoned)},
          {"config", config},
          {"digits", digits_json(config)},
          {"best", number(trial.best)},
          {"best_t", trial.best_t},
          {"best_at", record.best_at(trial.id).count()},
          {"t", trial.t},
          {"reason", trial.reason},
          {"error", trial.error},
          {"curve", curve_json(trial, most_points)},
          {"values", values_json(trial)},
          {"violation", number(trial.violation)},
          {"takeovers", takeovers_json(trial)}};
}

Json attempts_json(const RunRecord& record, const std::vector<Trial>& trials, Seconds now,
                   bool is_abandoned) {
  Json all = Json::array();
  for (const auto& each : record.attempts(now)) {
    // The attempt in which its trial was stopped, by the scheduler or by the end of the run.
    const bool is_last = each.status == Status::Stopped;
    all.push_back({{"trial", each.trial},
                   {"attempt", each.attempt},
                   {"begin", each.begin.count()},
                   {"end", each.end.count()},
                   {"status", is_last ? status_text(trials[each.trial], is_abandoned)
                                      : status_text(each.status, is_abandoned)},
                   {"places", to_json(each.places)}});
  }
  return all;
}

Json rungs_json(const Experiment& experiment) {
  Json all = Json::array();
  for (const auto& rung : experiment.rungs()) {
    all.push_back({{"bracket", rung.bracket},
                   {"rung", rung.rung},
                   {"t", rung.t},
                   {"reached", rung.reached},
                   {"stopped", rung.stopped},
                   {"not_finite", rung.not_finite},
                   {"cutoff", number(rung.cutoff)}});
  }
  return all;
}

Json importance_json(const Importance& importance) {
  Json fields = Json::array();
  for (const auto& [name, fanova, ped_anova] : importance.fields)
    fields.push_back(
        {{"name", name}, {"fanova", number(fanova)}, {"ped_anova", number(ped_anova)}});
  return {{"trials", importance.trials},
          {"warning", importance.warning},
          {"fields", std::move(fields)}};
}

Importance later() {
  return {.warning = "The importance of fields is in the report once the run is over."};
}

void put(std::string& page, std::string_view place, const std::string& text) {
  page.replace(page.find(place), place.size(), text);
}

/// For an element of a page: "<" begins nothing there.
std::string without_markup(std::string text) {
  for (auto at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string as_text(std::string text) {
  for (const auto& [sign, name] : {std::pair('&', "&amp;"), {'<', "&lt;"}, {'>', "&gt;"}}) {
    for (auto at = text.find(sign); at != std::string::npos; at = text.find(sign, at + 1))
      text.replace(at, 1, name);
  }
  return text;
}

}  // namespace

MetricCurves curves_of_reports(const std::filesystem::path& folder, const Experiment& experiment) {
  return metric_curves(folder / "reports.jsonl",
                       name_in_utf8(experiment.options().objective.metric), kMostPoints);
}

Json report_data(const Experiment& experiment, const SearchSpace& space, const RunRecord& record,
                 const std::string& title, Seconds now, const PageState& page,
                 const MetricCurves& metrics) {
  const bool is_abandoned = page.run == RunState::Abandoned;
  // A forest of a thousand trials takes a second, in which the search would wait.
  const bool has_importance = page.every == Seconds(0);
  const auto& objective = experiment.options().objective;
  const auto& trials = experiment.trials();
  const auto* best = experiment.best();
  Json json{{"title", title},
            {"metric", name_in_utf8(objective.metric)},
            {"mode", objective.mode == Mode::Max ? "max" : "min"},
            {"seconds", now.count()},
            {"ended_early", experiment.closed() ? Json(experiment.why_closed()) : Json()},
            {"not_begun", not_begun(experiment)},
            {"best", best ? Json(best->id) : Json()},
            {"best_checkpoint", best ? best->best_checkpoint : ""},
            {"fields", Json::array()},
            {"trials", Json::array()},
            {"attempts", attempts_json(record, trials, now, is_abandoned)},
            {"rungs", rungs_json(experiment)},
            {"under_way", page.run == RunState::UnderWay},
            {"written", std::chrono::duration<double>(page.written.time_since_epoch()).count()},
            {"every", page.every.count()},
            {"metrics", metrics.metrics},
            {"metrics_left_out", metrics.left_out},
            {"importance",
             importance_json(has_importance ? importance(space, objective, trials) : later())},
            {"objectives", Json::array()},
            {"constraints", to_json(experiment.options().constraints)},
            {"pareto", Json::array()},
            {"schedule", Json::array()}};
  for (const auto& field : space) {
    const bool is_searched = field.domain.range() || field.domain.values().size() > 1;
    if (is_searched) json["fields"].push_back(field_json(field));
  }
  if (const auto& objectives = experiment.options().objectives; !objectives.empty()) {
    json["objectives"] = to_json(objectives);
    json["pareto"] = pareto_front(trials, objective, objectives);
  }
  const auto most_points = kMostPoints / std::max<std::size_t>(trials.size(), 1);
  for (const auto& trial : trials)
    json["trials"].push_back(trial_json(trial, record, most_points, is_abandoned));
  if (best == nullptr || best->takeovers.empty()) return json;
  json["schedule"] = to_json(schedule_to_best(trials, best->id));
  for (auto& part : json["schedule"]) part["digits"] = digits_json(part.at("config"));
  return json;
}

std::string html_report(const Experiment& experiment, const SearchSpace& space,
                        const RunRecord& record, const std::string& title, Seconds now,
                        const PageState& page, const MetricCurves& metrics) {
  std::string text = html::kPage;
  put(text, "@TITLE@", as_text(title));
  put(text, "@STYLE@", html::kStyle);
  put(text, "@SCRIPT@", html::kScript);
  put(text, "@DATA@",
      without_markup(dump(report_data(experiment, space, record, title, now, page, metrics))));
  return text;
}

}  // namespace troupe::tune
