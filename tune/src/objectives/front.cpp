#include "objectives/front.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace troupe::tune {
namespace {

struct FrontMember {
  TrialId trial = 0;
  Scores scores = {};
};

/// Of a trial that may be in the front; else empty.
Scores scores_of(const Trial& trial, const Objective& only,
                 const std::vector<Objective>& objectives) {
  if (!is_candidate(trial) || trial.violation > 0) return {};
  if (objectives.empty()) return {only.score(*trial.best)};
  auto scores = scores_of(objectives, trial.values);
  return std::isfinite(scores.front()) ? scores : Scores{};
}

}  // namespace

std::vector<double> values_in(const std::vector<Objective>& objectives, const Metrics& metrics) {
  std::vector<double> values;
  for (const auto& objective : objectives) {
    const auto value = objective.value_in(metrics);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

std::optional<double> violation_in(const std::vector<Constraint>& constraints,
                                   const Metrics& metrics) {
  double sum = 0;
  for (const auto& constraint : constraints) {
    const auto value = Objective{.metric = constraint.metric}.value_in(metrics);
    if (!value) return std::nullopt;
    sum += constraint.violation_of(*value);
  }
  return sum;
}

Scores scores_of(const std::vector<Objective>& objectives, const std::vector<double>& values) {
  const Scores worst(objectives.size(), -std::numeric_limits<double>::infinity());
  if (values.size() != objectives.size()) return worst;
  Scores scores;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return worst;
    scores.push_back(objectives[i].score(values[i]));
  }
  return scores;
}

std::vector<TrialId> pareto_front(const std::vector<Trial>& trials, const Objective& only,
                                  const std::vector<Objective>& objectives) {
  std::vector<FrontMember> members;
  for (const auto& trial : trials) {
    auto scores = scores_of(trial, only, objectives);
    if (!scores.empty()) members.push_back({trial.id, std::move(scores)});
  }
  // In the order of the front, who dominates another one stands before it.
  std::ranges::stable_sort(members, [](const FrontMember& a, const FrontMember& b) {
    return std::ranges::lexicographical_compare(b.scores, a.scores);
  });
  std::vector<const FrontMember*> front;
  for (const auto& member : members) {
    const auto is_above = [&](const FrontMember* other) {
      return dominates(other->scores, member.scores);
    };
    if (std::ranges::none_of(front, is_above)) front.push_back(&member);
  }
  std::vector<TrialId> ids;
  for (const auto* member : front) ids.push_back(member->trial);
  return ids;
}

}  // namespace troupe::tune
