#pragma once

#include <troupe/train/deepspeed.hpp>

#include "deepspeed/block.hpp"

namespace troupe::train::deepspeed {

/// `optimizer`: its type and params.
OptimizerOptions read_optimizer(Block& block);
/// `scheduler`: its type and params.
Schedule read_schedule(Block& block);
/// `zero_optimization`.
void read_zero(Block& block, Config& config);
/// `fp16`, `bf16` and `torch_autocast`, of which one may be enabled. `whole`: the configuration.
void read_precision(Block& whole, Config& config);

}  // namespace troupe::train::deepspeed
