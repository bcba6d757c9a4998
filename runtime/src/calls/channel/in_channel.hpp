#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "calls/channel/record.hpp"
#include "calls/execution_record.hpp"
#include "objects/object.hpp"
#include "ring/bell.hpp"
#include "ring/segment.hpp"

namespace troupe::runtime {

/// The callee's end of a channel: the executor's thread takes calls and puts replies. Made by the
/// loop, then the executor's alone, but for send_through_socket, which goes to the loop.
class InChannel {
 public:
  struct Callbacks {
    ProcessId caller{};
    ring::Segment segment;
    std::unique_ptr<ring::Bell> caller_bell;  // rung where a thread of the caller sleeps
    os::UniqueFd caller_loop;                 // an eventfd, written where nobody there looks
    /// For outcomes that a ring cannot carry. On the executor's thread.
    std::function<void(std::uint64_t id, Outcome outcome, std::chrono::nanoseconds run_time)>
        send_through_socket;
    // The ring of calls holds what no caller writes. Any thread.
    std::function<void()> damaged = {};
  };
  explicit InChannel(Callbacks callbacks);

  ProcessId caller() const { return callbacks_.caller; }

  // ---- calls
  bool empty() const { return calls_.empty(); }
  /// The next call, until pop(); nullptr: there is none. It is taken: it can no longer be revoked.
  struct Call {
    CallHead head;
    RecordReader arguments;
    ExecutionMark mark;  // where it is noted that it began, and that it finished
  };
  std::optional<Call> front();
  void pop() { calls_.pop(); }
  /// What was popped is answered through the socket, or not at all where its caller has given it up:
  /// no reply in the ring says that there is room.
  void passed_over() { published(); }
  void before_sleep() { calls_.set_watch(ring::Watch::Asleep); }
  void after_sleep() { calls_.set_watch(ring::Watch::Active); }
  /// There is nothing to be had from it any more; who knows its caller is told, once.
  bool broken();

  // ---- replies
  void reply(std::uint64_t id, Outcome&& outcome, std::chrono::nanoseconds run_time);

 private:
  std::optional<Call> next_call(bool& revoked);
  /// The caller is to look: there is a reply, or room.
  void published();

  Callbacks callbacks_;
  ring::Consumer calls_;
  ring::Producer replies_;
  bool told_damaged_ = false;
};
using InChannelPtr = std::shared_ptr<InChannel>;

}  // namespace troupe::runtime
