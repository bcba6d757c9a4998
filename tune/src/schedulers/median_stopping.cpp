#include <troupe/tune/schedulers/median_stopping.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "schedulers/saved_state.hpp"
#include "text/format.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace {

/// Of at least one.
double median_of(std::vector<double>& values) {
  std::ranges::sort(values);
  const auto upper = values[values.size() / 2];
  if (values.size() % 2 == 1) return upper;
  return (values[values.size() / 2 - 1] + upper) / 2;
}

}  // namespace

MedianStopping::MedianStopping(MedianStoppingOptions options, Objective objective)
    : options_{options}, objective_{std::move(objective)} {
  if (options.grace < 1 || options.min_samples < 1 || options.interval < 1)
    throw std::invalid_argument(fmt::format(
        "median_stopping needs values of 1 and more: grace={}, min_samples={}, interval={}",
        options.grace, options.min_samples, options.interval));
}

void MedianStopping::add(Curve& curve, std::int64_t t, double score) const {
  Point point{.t = t, .score = score};
  if (!curve.points.empty()) {
    point.sum = curve.points.back().sum;
    point.count = curve.points.back().count;
  }
  if (t >= options_.grace) {
    point.sum += score;
    ++point.count;
  }
  curve.points.push_back(point);
}

/// No report with the metric has come yet since the last t at which a trial is judged.
bool MedianStopping::is_due(const Curve& curve, std::int64_t t) const {
  if (t < options_.grace) return false;
  if (curve.points.empty() || curve.points.back().t < options_.grace) return true;
  const auto passed = [&](std::int64_t at) { return (at - options_.grace) / options_.interval; };
  return passed(t) > passed(curve.points.back().t);
}

/// The average of each of the others that has come so far.
std::vector<double> MedianStopping::averages_of_others(TrialId trial, std::int64_t t) const {
  std::vector<double> averages;
  for (const auto& [other, curve] : curves_) {
    if (other == trial || curve.t < t) continue;
    const auto after = std::ranges::upper_bound(curve.points, t, {}, &Point::t);
    if (after == curve.points.begin()) continue;
    const auto& last = *std::prev(after);
    if (last.count > 0) averages.push_back(last.sum / static_cast<double>(last.count));
  }
  return averages;
}

Decision MedianStopping::on_report(const Trial& trial, const Population&) {
  const auto value = objective_.value_in(trial.last);
  auto& curve = curves_[trial.id];
  if (trial.t <= curve.t) return {};
  curve.t = trial.t;
  if (!value) return {};
  const bool is_judged = is_due(curve, trial.t);
  add(curve, trial.t, objective_.score(*value));
  if (!is_judged) return {};
  if (!std::isfinite(*value))
    return Stop{
        fmt::format("stopped at t={}: {} is {}", trial.t, objective_.metric, to_string(*value)),
        {}};
  auto averages = averages_of_others(trial.id, trial.t);
  if (averages.size() < options_.min_samples) {
    return GoOn{.why = fmt::format("not judged at t={}: {} came so far, and it takes {}", trial.t,
                                   counted(averages.size(), "other trial"), options_.min_samples)};
  }
  const auto median = median_of(averages);
  const auto best = std::ranges::max_element(curve.points, {}, &Point::score)->score;
  const auto shown = [&](double score) {
    return short_number(objective_.mode == Mode::Max ? score : -score);
  };
  const auto against = fmt::format("{} the median {} of the averages of {}",
                                   objective_.mode == Mode::Max ? "below" : "above", shown(median),
                                   counted(averages.size(), "other trial"));
  if (best >= median) {
    return GoOn{.why = fmt::format("goes on at t={}: its best {} {} is not {}", trial.t,
                                   objective_.metric, shown(best), against)};
  }
  return Stop{fmt::format("stopped at t={}: its best {} {} is {}", trial.t, objective_.metric,
                          shown(best), against),
              {}};
}

/// Its curve stays: the others are compared with it.
void MedianStopping::on_end(TrialId, const Population&) {}

std::string MedianStopping::save() const {
  Json curves = Json::array();
  for (const auto& [trial, curve] : curves_) {
    Json points = Json::array();
    for (const auto& point : curve.points) points.push_back({point.t, to_json(point.score)});
    curves.push_back({{"trial", trial}, {"t", curve.t}, {"points", std::move(points)}});
  }
  return dump({{"scheduler", "median stopping"},
               {"grace", options_.grace},
               {"min_samples", options_.min_samples},
               {"interval", options_.interval},
               {"metric", objective_.metric},
               {"mode", objective_.mode == Mode::Max ? "max" : "min"},
               {"curves", std::move(curves)}});
}

void MedianStopping::load(std::string_view saved) {
  try {
    const auto json = parse(saved, "a scheduler's state");
    MedianStopping fresh(options_, objective_);
    check_same_scheduler(json, parse(fresh.save(), "a scheduler's state"),
                         {"scheduler", "grace", "min_samples", "interval", "metric", "mode"});
    for (const auto& from : json.at("curves")) {
      auto& curve = fresh.curves_[from.at("trial").get<TrialId>()];
      for (const auto& point : from.at("points"))
        add(curve, point.at(0).get<std::int64_t>(), number_from(point.at(1)));
      curve.t = from.at("t").get<std::int64_t>();
    }
    curves_ = std::move(fresh.curves_);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a state of median_stopping: {}", broken.what()));
  }
}

SchedulerFactory median_stopping(MedianStoppingOptions options) {
  // Refuses bad options here, where they were written.
  [[maybe_unused]] const MedianStopping refused(options, {});
  return [options](const Objective& objective, std::uint64_t) -> std::unique_ptr<TrialScheduler> {
    return std::make_unique<MedianStopping>(options, objective);
  };
}

}  // namespace troupe::tune
