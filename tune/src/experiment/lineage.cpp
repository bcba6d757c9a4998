#include <troupe/tune/lineage.hpp>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <troupe/tune/trial.hpp>

#include "text/format.hpp"

namespace troupe::tune {

const Configuration& config_after(const Trial& trial, std::size_t takeovers) {
  return takeovers == trial.takeovers.size() ? trial.config : trial.takeovers.at(takeovers).before;
}

const Configuration& config_of_best(const Trial& trial) {
  if (!trial.best) return trial.config;
  return config_after(trial, std::min(trial.best_takeovers, trial.takeovers.size()));
}

const Configuration& config_of_values(const Trial& trial) {
  if (trial.values.empty()) return trial.config;
  return config_after(trial, std::min(trial.values_takeovers, trial.takeovers.size()));
}

std::vector<Segment> schedule_of(const std::vector<Trial>& trials, TrialId trial,
                                 std::size_t takeovers) {
  std::vector<Segment> segments;  // the last one first
  auto until = std::numeric_limits<std::int64_t>::max();
  while (true) {
    const auto& at = trials.at(trial);
    const bool is_first = takeovers == 0;
    const auto from = is_first ? 0 : at.takeovers.at(takeovers - 1).checkpoint_t;
    if (from < until) segments.push_back({from, trial, config_after(at, takeovers)});
    if (is_first) break;
    const auto& last = at.takeovers[takeovers - 1];
    until = std::min(until, from);
    trial = last.donor;
    takeovers = last.donor_takeovers;
  }
  std::ranges::reverse(segments);
  return segments;
}

std::vector<Segment> schedule_of(const std::vector<Trial>& trials, TrialId trial) {
  return schedule_of(trials, trial, trials.at(trial).takeovers.size());
}

std::vector<Segment> schedule_to_best(const std::vector<Trial>& trials, TrialId trial) {
  const auto& at = trials.at(trial);
  return schedule_of(trials, trial, std::min(at.best_takeovers, at.takeovers.size()));
}

std::string describe(const Segment& segment) {
  const auto from = segment.after_t == 0 ? std::string("from the start")
                                         : fmt::format("after t={}", segment.after_t);
  return fmt::format("{}: {} (trial {})", from, short_text(segment.config), segment.trial);
}

std::string describe(const Takeover& takeover, TrialId trial) {
  const auto change = describe_change(takeover.donor_config, takeover.after);
  if (takeover.donor == trial)
    return fmt::format("trial {} changes at t={}: {}", trial, takeover.checkpoint_t, change);
  const auto at = takeover.checkpoint_t == takeover.t
                      ? ""
                      : fmt::format(" (from its t={})", takeover.checkpoint_t);
  return fmt::format("trial {} takes over trial {} at t={}{}: {}", trial, takeover.donor,
                     takeover.t, at, change);
}

std::string describe_change(const Configuration& before, const Configuration& after) {
  std::string changed, kept;
  for (const auto& [name, value] : after) {
    const auto old = std::ranges::find(before, name, &Configuration::value_type::first);
    if (old != before.end() && old->second == value) {
      kept += (kept.empty() ? "" : ", ") + name;
    } else {
      const auto from = old == before.end() ? std::string("none") : short_text(old->second);
      changed +=
          fmt::format("{}{} {} -> {}", changed.empty() ? "" : ", ", name, from, short_text(value));
    }
  }
  if (changed.empty()) return "nothing changed";
  return kept.empty() ? changed : changed + ", " + kept + " kept";
}

}  // namespace troupe::tune
