#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "calls/deaths/kept_reply.hpp"
#include "ring/byte_ring.hpp"

namespace troupe::runtime {

/// Where a reply stands in the log of its process; ascends. 0: it is not there.
using ReplyPlace = std::uint64_t;

/// The replies that a worker process sends through sockets, in memory that outlives it, until their
/// callers have them: its node reads those that are left after its end, and the head hands each to
/// its caller with the news of the death. So a death costs its callers what was running, and no
/// reply that lay in the process or in a connection which the death reset. (A reply through a ring
/// is in the ring's own memory.) What holds:
///
///   1. Before the executor begins a call, the reply of the call before it is out of the process: in a ring, in this log,
///      or, where it does not fit the log, written to its unix socket, unless its caller takes nothing there for long.
///   2. A reply stays in the log until its caller has acknowledged it or has ended.
///   3. After the end of the process each reply that is left is read whole and in order, and nothing outside the log,
///      whatever the process has written there.
///   4. A kept reply answers a call that is in flight and does nothing else: its call is answered once, and is not run again.
///
/// A reply that goes into the log costs its executor a copy, and no system call. keep() is the
/// executor's, arrived() and forget() are the loop's: there is no lock.
class ReplyLog {
 public:
  static constexpr std::size_t kRingBytes = std::size_t{512} << 10;
  /// A larger reply is written to its socket: that costs it less than a tenth of its way.
  static constexpr std::size_t kMostBytes = std::size_t{8} << 10;
  /// That the log takes; pages cost memory once touched.
  static constexpr std::size_t bytes() { return sizeof(ring::Control) + kRingBytes; }

  /// `memory`: bytes() that are zero.
  explicit ReplyLog(void* memory);

  /// -> 0: it is no plain value or failure, or larger than kMostBytes, or there is no room.
  ReplyPlace keep(ProcessId caller, std::uint64_t call, const Outcome& outcome,
                  std::chrono::nanoseconds run_time);
  /// The caller has what was kept for it up to this place. 0: nothing new.
  void arrived(ProcessId caller, ReplyPlace last);
  /// The caller has ended.
  void forget(ProcessId caller);

  /// After the end of the process that wrote it.
  static std::vector<KeptReply> read(void* memory);

 private:
  void release();

  ring::Producer kept_;
  ring::Consumer oldest_;
  /// Up to where each caller has its replies, while some reply is kept.
  std::unordered_map<ProcessId, ReplyPlace> arrived_;
};

}  // namespace troupe::runtime
