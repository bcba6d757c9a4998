#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/errors.hpp>

#include "calls/deaths/kept_reply.hpp"
#include "calls/progress.hpp"

namespace troupe::runtime {

/// The end of a process, as its caller is told of it.
struct Death {
  Death(Failure failure, std::optional<CallsSeen> seen = std::nullopt)
      : how(std::move(failure)), calls(seen) {}

  Failure how;
  std::optional<CallsSeen> calls;  ///< of this caller; nullopt: nobody knows
  /// To this caller, in the order in which the process finished the calls. It may have had some.
  std::vector<KeptReply> replies = {};

  Progress of(std::uint64_t call) const { return calls ? calls->of(call) : Progress::Unknown; }
};

}  // namespace troupe::runtime
