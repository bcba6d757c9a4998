#pragma once

#include <cstdint>
#include <vector>

#include <troupe/train/plan.hpp>

/// The arithmetic of a plan: pure functions of numbers. Their options have no zero that stands for
/// something, their models have a largest parameter, and both were checked (plan/checks.hpp).
namespace troupe::train {

/// Elements of the largest parameter of a transformer of `trained` parameters.
std::uint64_t largest_of_transformer(std::uint64_t trained);

/// Those that Plan::strategies lists, in its order.
std::vector<ZeroOptions> strategies_for(const PlanOptions& options);

/// What one rank needs for the strategy, and whether each device and each node has as much.
PlannedStrategy predict(const ModelSize& model, const PlanOptions& options,
                        const ZeroOptions& zero);
/// predict() for each of strategies_for().
std::vector<PlannedStrategy> predict_all(const ModelSize& model, const PlanOptions& options);

/// Plan::making.
std::uint64_t making_bytes(const ModelSize& model, const PlanOptions& options);

}  // namespace troupe::train
