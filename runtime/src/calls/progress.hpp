#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <troupe/errors.hpp>

namespace troupe::runtime {

/// How far a call had come whose callee has ended, or cannot be reached any more.
enum class Progress : std::uint8_t {
  NotBegun,  ///< none of the user's code has run for it
  UnderWay,  ///< the user's code had begun
  Finished,  ///< the user's code had returned; the reply was lost
  Unknown,   ///< nobody is left to say: it may have begun, and may have finished
};

/// The calls of one caller that a process received through a socket. Their ids ascend, and it runs
/// them in that order, one at a time: two numbers say how far it had come with each of them. 0:
/// with none.
struct CallsSeen {
  std::uint64_t begun = 0;     ///< the last one that it began
  std::uint64_t finished = 0;  ///< the last one that it finished

  Progress of(std::uint64_t call) const {
    if (call > begun) return Progress::NotBegun;
    return call <= finished ? Progress::Finished : Progress::UnderWay;
  }
};

/// The end of a process, as its caller is told of it.
struct Death {
  Death(Failure failure, std::optional<CallsSeen> seen = std::nullopt)
      : how(std::move(failure)), calls(seen) {}

  Failure how;
  std::optional<CallsSeen> calls;  ///< of this caller; nullopt: nobody knows

  Progress of(std::uint64_t call) const { return calls ? calls->of(call) : Progress::Unknown; }
};

}  // namespace troupe::runtime
