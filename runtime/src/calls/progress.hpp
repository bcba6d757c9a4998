#pragma once

#include <cstdint>

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

}  // namespace troupe::runtime
