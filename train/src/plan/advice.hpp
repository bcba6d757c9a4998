#pragma once

#include <optional>
#include <string>

#include <troupe/train/plan.hpp>

/// What a plan recommends: pure functions of numbers.
namespace troupe::train {

/// Where a strategy fits that does not fit on fewer ranks.
struct EnoughRanks {
  int ranks = 0;
  ZeroOptions zero;  ///< the fastest that fits there
};

/// With as many ranks on each node, and the same memory. For options with which nothing fits;
/// nullopt: nothing fits on up to 65,536 ranks either.
std::optional<EnoughRanks> enough_ranks(const ModelSize& model, const PlanOptions& options);

/// Plan::advice, from all the rest of the plan.
std::string advice_on(const Plan& plan);

}  // namespace troupe::train
