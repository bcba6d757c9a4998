#pragma once

#include <chrono>
#include <cstdint>

#include "ids/ids.hpp"
#include "objects/object.hpp"

namespace troupe::runtime {

/// The outcome of a call that its process had finished, kept for a caller to whom it may not have
/// come. A value.
struct KeptReply {
  ProcessId caller{};
  std::uint64_t call = 0;  ///< as its caller numbers it; of a ring too (ChannelCallId)
  std::chrono::nanoseconds run_time{0};
  Outcome outcome;  ///< a plain value without refs, or a failure
};

}  // namespace troupe::runtime
