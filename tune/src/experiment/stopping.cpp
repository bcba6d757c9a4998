#include "experiment/stopping.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include "text/format.hpp"

namespace troupe::tune {
namespace {

double best_score(std::span<const Observation> observations, const Objective& objective) {
  double best = -std::numeric_limits<double>::infinity();
  for (const auto& each : observations) best = std::max(best, objective.score(each.value));
  return best;
}

/// Its last `plateau.reports` values were not better than those before them.
bool is_on_plateau(const StopWhen& stop, const Objective& objective, const Trial& trial) {
  const auto last = static_cast<std::size_t>(stop.plateau.reports);
  if (last == 0 || trial.history.size() <= last) return false;
  const std::span<const Observation> all(trial.history);
  const auto before = best_score(all.first(all.size() - last), objective);
  return !(best_score(all.last(last), objective) > before + stop.plateau.delta);
}

}  // namespace

void check(const StopWhen& stop) {
  const auto at_least_0 = [](const char* option, auto number) {
    if (number >= 0) return;
    throw std::invalid_argument(fmt::format("tune: stop.{} is {}, at least 0", option, number));
  };
  at_least_0("reports", stop.reports);
  at_least_0("plateau.reports", stop.plateau.reports);
  at_least_0("plateau.delta", stop.plateau.delta);
  at_least_0("trial_time (in ms)", stop.trial_time.count());
  at_least_0("all_reports", stop.all_reports);
  at_least_0("cost", stop.cost);
  if (stop.reaches && std::isnan(*stop.reaches))
    throw std::invalid_argument("tune: stop.reaches is nan, which every metric would reach");
  if (stop.cost > 0 && stop.cost_metric.empty()) {
    throw std::invalid_argument(
        fmt::format("tune: stop.cost is {}, and stop.cost_metric does not name the metric that "
                    "each report gives its cost as",
                    stop.cost));
  }
}

std::optional<std::string> why_time_is_up(const StopWhen& stop, const Trial& trial, Seconds now) {
  if (stop.trial_time.count() <= 0 || now - trial.started < stop.trial_time) return std::nullopt;
  return fmt::format("has run for {}", short_time(now - trial.started));
}

std::optional<std::string> why_trial_ends(const StopWhen& stop, const Objective& objective,
                                          const Trial& trial, Seconds now) {
  if (stop.reports > 0 && trial.t >= stop.reports) return fmt::format("made {} reports", trial.t);
  if (auto why = why_time_is_up(stop, trial, now)) return why;
  if (is_on_plateau(stop, objective, trial))
    return fmt::format("{} is no better than {} reports ago", objective.metric,
                       stop.plateau.reports);
  return std::nullopt;
}

std::optional<std::string> why_run_ends(const StopWhen& stop, const RunProgress& progress) {
  if (stop.all_reports > 0 && progress.reports >= stop.all_reports)
    return fmt::format("its trials made {}, as stop.all_reports says",
                       counted(static_cast<std::size_t>(progress.reports), "report"));
  if (stop.cost > 0 && progress.cost >= stop.cost)
    return fmt::format("its trials cost {} of {}, as stop.cost says", short_number(progress.cost),
                       stop.cost_metric);
  if (stop.no_better_trials > 0 && progress.no_better >= stop.no_better_trials)
    return fmt::format("{} ended without a better one, as stop.no_better_trials says",
                       counted(progress.no_better, "trial"));
  return std::nullopt;
}

}  // namespace troupe::tune
