#pragma once

#include <cstdint>

#include <troupe/errors.hpp>

namespace troupe::runtime {

/// The sessions of this OS process with clusters are numbered from 1, one after the other; 0: it is
/// in none. Numbers of processes and objects mean something within one only, so what outlives its
/// session says nothing to the next. Any thread.
std::uint64_t current_session();
/// By who starts and ends the one session of this process.
void begin_session();
void end_session();

/// What becomes of a call with something of an earlier session.
inline Failure of_an_ended_session() {
  return {.kind = Failure::Kind::Disconnected,
          .message = "it belongs to a session with a cluster that has ended"};
}

}  // namespace troupe::runtime
