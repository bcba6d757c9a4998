#pragma once

#include <string>

#include <troupe/train/deepspeed.hpp>

#include "deepspeed/block.hpp"

namespace troupe::train::deepspeed {

/// The text with small letters, of ASCII.
std::string lower(std::string text);

/// `optimizer`: its type and params.
OptimizerOptions read_optimizer(Block& block);
/// `scheduler`: its type and params.
Schedule read_schedule(Block& block);

}  // namespace troupe::train::deepspeed
