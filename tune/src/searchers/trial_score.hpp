#pragma once

#include <limits>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// What a search that learns from whole trials takes a trial to be worth, higher being better: its
/// best report, also where a scheduler stopped it; minus infinity where it failed or reported
/// nothing finite.
inline double trial_score(const TrialEnd& end, const Objective& objective) {
  if (end.errored || !end.best) return -std::numeric_limits<double>::infinity();
  return objective.score(*end.best);
}

}  // namespace troupe::tune
