#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "output/overview.hpp"

/// What people see of a run, as functions from values to text. Every line ends in "\n" and is at
/// most `width` columns.
namespace troupe::tune {

struct Look {
  std::size_t width = 80;
  bool colour = false;
};

/// The table that is drawn again and again on a terminal: a head line, the best trial, a line a
/// row.
std::string render_table(const Overview& overview, const Look& look);

/// The best trial so far, and by what.
struct BestSoFar {
  const Trial* trial = nullptr;  ///< none yet
  Objective objective = {};
  bool is_one_of_several = false;  ///< the objective, so that no trial is the best one
};

/// "best"; of one of several objectives "lowest loss".
std::string word_for_best(const Objective& objective, bool is_one_of_several);

/// One line about an event where there is no terminal; none for an event of no note. `same_error`:
/// the trial whose error was shown before, where this one's is the same.
std::optional<std::string> render_event(const Event& event, const Trial* trial,
                                        const BestSoFar& best,
                                        std::optional<TrialId> same_error = {});

/// The end of a run: the best configuration, how many trials ended how, what stopped how many at
/// each rung. `look.width` limits no line here: nothing is cut.
std::string render_summary(const Overview& overview, const Look& look);

}  // namespace troupe::tune
