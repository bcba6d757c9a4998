#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "calls/channel/record.hpp"
#include "calls/executor.hpp"
#include "calls/progress.hpp"
#include "objects/object.hpp"
#include "os/ticks.hpp"
#include "ring/bell.hpp"
#include "ring/segment.hpp"

namespace troupe::runtime {

class CallReceiver;

/// A call that went into a channel and has no answer yet.
struct PendingCall {
  detail::ObjectPtr result = {};
  CallReceiver* receiver = nullptr;
  std::shared_ptr<void> context = {};  // the receiver's
  std::string_view label = {};         // of the function, for messages; static storage
  os::Ticks called = 0;                // by user code, for `troupe timeline`; 0: not said
  // Stored arguments: they must not be freed before the callee has seen them.
  std::shared_ptr<void> held = {};
};

/// Who made a call: what becomes of it.
class CallReceiver {
 public:
  /// Any thread, under no lock of a channel.
  virtual void answered(PendingCall call, Outcome outcome, std::chrono::nanoseconds run_time) = 0;
  /// The loop. The callee has ended, or cannot be reached any more.
  virtual void lost(PendingCall call, Progress progress, const Failure& how) = 0;

 protected:
  ~CallReceiver() = default;
};

/// The caller's end of a channel to one worker process of this machine: a ring of calls there, a
/// ring of replies back. Any thread sends, and any thread that waits takes the replies, so that no
/// other thread stands between a caller and its callee. What a ring cannot hold now waits in
/// memory; what it can never hold (refs, large values) goes through the socket, and only its place
/// in the order stands in the ring.
///
///   a call: [in flight] --reply--> [answered];  --revoke(), if it was not taken--> [revoked];  --close()--> [lost]
///   the channel: [open] --close()--> [closed]
///   who looks for replies: a waiting thread while there is one, else the loop, which is told by its eventfd
class OutChannel : public std::enable_shared_from_this<OutChannel> {
 public:
  /// Of one call, its head too.
  static constexpr std::size_t kInlineBytes = ring::Segment::kRecordBytes;
  static constexpr std::uint32_t kNowAndThen = 32;
  static constexpr std::uint64_t kMuch = 16;  ///< calls or replies between two turns of the loop

  /// `damaged`: called once, by any thread, if the ring of replies holds what no callee writes.
  OutChannel(ProcessId callee, ring::Segment segment, std::unique_ptr<ring::Bell> callee_bell,
             std::function<void()> damaged = {});

  ProcessId callee() const { return callee_; }
  /// True if a record of a ring can hold them: plain small values that are all here.
  static bool carries(std::span<const detail::Argument> arguments);

  /// Any thread. -> the call's id; nullopt, and `call` as it was, if the channel is closed, or the
  /// arguments are not plain small values that are all here.
  std::optional<std::uint64_t> send(Work::Kind kind, const detail::FunctionKey& function,
                                    std::span<const detail::Argument> arguments, PendingCall& call);
  /// The loop, which sends the content through the socket under this id. nullopt: closed.
  std::optional<std::uint64_t> send_via_socket(PendingCall& call);
  /// Any thread: takes the call back if it has not started. A call whose content went elsewhere is
  /// never given back.
  std::optional<PendingCall> revoke(std::uint64_t id);
  /// Any thread: the call, if revoked, is answered with Cancelled.
  void cancel(std::uint64_t id);
  /// Any thread: whether the callee has begun the call; false too where it is none in flight.
  bool has_begun(std::uint64_t id);
  /// Of a call in flight: this process's other calls that the callee has before it.
  struct Line {
    std::size_t before = 0;    ///< with the one that runs
    std::string_view running;  ///< the label of the last that has begun; empty: none of them has
    os::Ticks called = 0;      ///< when that one was called; 0: not known
  };
  /// Any thread. Cost: O(calls in flight).
  Line line_before(std::uint64_t id);
  /// The loop: a reply that came through the socket.
  void answer(std::uint64_t id, Outcome outcome, std::chrono::nanoseconds run_time);

  /// Hands over the replies that are there. Any thread; -> how many.
  std::size_t drain();
  /// A thread begins to wait for replies of this channel: it will drain(), before_sleep() each time
  /// before it sleeps on the doorbell, and stop_waiting().
  void start_waiting();
  void before_sleep();
  void stop_waiting();

  /// The loop's turn to look, after its eventfd was written or a while later. -> true: much goes on
  /// here, so that it is not told again but is to come back after a rest.
  bool loop_turn();
  /// For a thread that has sent and holds no lock: now and then it takes what has been answered,
  /// which it has in its cache.
  void drain_now_and_then(std::uint64_t id) {
    if (ChannelCallId::of(id).slot % kNowAndThen == 0) drain();
  }
  std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  /// True from the moment that the loop is to look until it has found nothing in flight.
  bool is_the_loops() const { return loop_looks_.load(std::memory_order_relaxed); }
  /// Only of a closed one, on the loop.
  const Failure& why_closed() const { return why_closed_; }

  /// The loop: no more calls or replies. What is in flight is lost with `how`; how far each had
  /// come stands in the ring's memory, which is believed where the callee has `ended`.
  void close(const Failure& how, bool ended);

 private:
  struct Slot {
    PendingCall call;
    std::uint32_t use = 0;
    bool taken = false;
    bool via_socket = false;
    bool in_ring = false;        // else it overflowed
    std::uint64_t position = 0;  // there, or in what overflowed
  };
  struct Reply {
    PendingCall call;
    detail::Payload value;
    std::chrono::nanoseconds run_time;
  };

  std::uint64_t take_slot(PendingCall& call, bool via_socket);
  Slot* find(std::uint64_t id);
  PendingCall free_slot(Slot& slot);
  Progress progress(const Slot& slot, bool ended) const;
  /// -> true: the callee is to be woken.
  bool put(std::uint64_t id, std::size_t bytes, const auto& write);
  bool flush_overflow();
  bool published();
  void watch_replies();
  void take_replies(std::vector<Reply>& into);

  const ProcessId callee_;
  ring::Segment segment_;
  const std::unique_ptr<ring::Bell> callee_bell_;
  const std::function<void()> damaged_;
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<bool> overflows_{false};
  std::atomic<bool> loop_looks_{false};  // written under the mutex

  std::mutex mutex_;  // guards what follows: both ends of this side, and what is in flight
  ring::Producer calls_;
  ring::Consumer replies_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  /// Calls that the ring had no room for, by id; 0: revoked. A slot's position counts them from the
  /// first ever.
  std::deque<std::pair<std::uint64_t, std::vector<std::byte>>> overflow_;
  std::uint64_t overflow_begin_ = 0;
  int waiters_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t sent_before_turn_ = 0;
  bool told_damaged_ = false;
  bool closed_ = false;
  Failure why_closed_;
};
using OutChannelPtr = std::shared_ptr<OutChannel>;

}  // namespace troupe::runtime
