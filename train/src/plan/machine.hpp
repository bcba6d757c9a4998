#pragma once

#include <troupe/train/plan.hpp>

namespace troupe::train {

/// The options with what this machine and the defaults give where they have zeros, and with a
/// device that is not Auto. Does not initialize CUDA: no process that is forked from this one could
/// use CUDA afterwards. Throws std::invalid_argument for what this machine does not have or tell.
PlanOptions completed(PlanOptions options);

}  // namespace troupe::train
