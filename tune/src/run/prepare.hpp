#pragma once

#include <memory>
#include <string>
#include <vector>

#include <troupe/tune/detail/search.hpp>

#include "run/checkpoints/checkpoint_names.hpp"

namespace troupe::tune::detail {

/// What a run and its simulation begin with.
struct Prepared {
  Plan plan = {};  ///< with the fields that the scheduler changes in its space
  std::unique_ptr<Experiment> experiment = {};
};

/// Makes the searcher, the scheduler and the experiment of a plan. Throws std::invalid_argument,
/// saying what and why, for a plan that can not be. `keeps_checkpoints`: attempts can write them.
Prepared prepare(Plan plan, bool keeps_checkpoints);

/// What people should know of a search before it begins: it may be what they want, and often is not.
std::vector<std::string> forewarnings(const Plan& plan, const Searcher& searcher);

/// What the experiment came to, with the paths of its checkpoints. Its `summary` and `folder` are empty.
Outcome outcome_of(const Experiment& experiment, Seconds now, const CheckpointNames& names = {});

}  // namespace troupe::tune::detail
