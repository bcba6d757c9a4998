#pragma once

#include <cstdint>
#include <string>

#include <troupe/train/zero.hpp>

/// How a plan says sizes and strategies.
namespace troupe::train {

/// "1,240", "66.3", "1.88" or "<0.01": GB of 10^9 bytes, without the unit.
std::string in_gb(std::uint64_t bytes);
/// "13.0 billion", "7.5 million", "650"
std::string count_in_words(std::uint64_t count);
/// "stage 3, optimizer offloaded"; "all offloaded": with the parameters
std::string name_of(const ZeroOptions& zero);
/// ".zero = {.stage = 3, .offload_optimizer = true}", as ContextOptions take it.
std::string code_of(const ZeroOptions& zero);

}  // namespace troupe::train
