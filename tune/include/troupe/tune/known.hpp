#pragma once

#include <vector>

#include <troupe/tune/objective.hpp>

namespace troupe::tune {

/// The result of a configuration that is known from an earlier run.
template <class Config>
struct KnownResult {
  Config config = {};
  double value = 0;  ///< of the metric; a value that is not finite is the worst
  /// In place of `value`, in a run with several objectives: one for each, in their order.
  std::vector<double> values = {};
  double violation = 0;  ///< of the constraints, as Trial::violation
  /// Of the search that found it, as Results::known() has them: a search with others refuses the result.
  /// Clear them where they are the same under other names. Empty: those of the search that it is given to.
  std::vector<Objective> objectives = {};
};

}  // namespace troupe::tune
