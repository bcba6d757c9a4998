#include "objectives/best.hpp"

#include <cmath>

namespace troupe::tune {
namespace {

/// The value by which the trial is compared; none: it is no candidate.
std::optional<double> compared_value(const Trial& trial, const BestOf& which) {
  if (!which.including_failed && !is_candidate(trial)) return std::nullopt;
  if (which.scope == Scope::All) return trial.best;
  if (trial.history.empty() || !std::isfinite(trial.history.back().value)) return std::nullopt;
  return trial.history.back().value;
}

}  // namespace

std::optional<TrialId> best_of(const std::vector<Trial>& trials, const Objective& objective,
                               const BestOf& which) {
  std::optional<TrialId> best;
  double best_value = 0;
  for (const auto& trial : trials) {
    const auto value = compared_value(trial, which);
    if (!value || (best && !objective.better(*value, best_value))) continue;
    best = trial.id;
    best_value = *value;
  }
  return best;
}

}  // namespace troupe::tune
