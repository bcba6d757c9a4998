#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/objective.hpp>
#include <troupe/tune/space.hpp>
#include <troupe/tune/trial.hpp>

namespace troupe::tune {

/// Of fewer trials with a value no importance is shown.
inline constexpr std::size_t kLeastTrialsForImportance = 10;
/// Of fewer trials with a value a warning goes with it.
inline constexpr std::size_t kTrustedTrialsForImportance = 100;

/// How much one searched field decides. A value.
struct FieldImportance {
  std::string name = {};
  /// The part of the metric's variance that the field alone explains; none: not every trial has it.
  std::optional<double> fanova = {};
  /// Its part in what sets the best tenth of the trials apart; none: too few trials have it.
  std::optional<double> ped_anova = {};
};

/// The importance of a run's fields, and how far it is to be trusted. A value.
struct Importance {
  std::size_t trials = 0;    ///< that were counted
  std::string warning = {};  ///< sentences for the reader; empty: none is needed
  std::vector<FieldImportance> fields =
      {};  ///< by fANOVA, the highest first; empty: warning says why
};

/// Of the trials that have a finite value and did not fail, each with its best value and the
/// configuration that led to it: fanova() and ped_anova() of the searched fields, in the coordinates
/// of Axis, so that a range counts as it is drawn, a log range by its logarithms.
///
/// fANOVA is of the fields that all of these trials have: a field under a condition is in no such
/// model unless the condition always held, and its effect is in the rest. Trials with a value
/// outside of the space, to which a population may have moved them, are not in that model. A pure
/// function: the same trials give the same figures.
Importance importance(const SearchSpace& space, const Objective& objective,
                      const std::vector<Trial>& trials);

}  // namespace troupe::tune
