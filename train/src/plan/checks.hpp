#pragma once

#include <troupe/train/plan.hpp>

namespace troupe::train {

/// Throws std::invalid_argument, which names the number, for a model or options that cannot be, or
/// are so large that sums of bytes would not be right.
void check_plan(const ModelSize& model, const PlanOptions& options);

}  // namespace troupe::train
