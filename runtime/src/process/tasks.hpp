#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "process/calls.hpp"
#include "process/doorbell.hpp"
#include "process/resolver.hpp"
#include "process/withdrawing_queue.hpp"

namespace troupe::process {

/// The tasks that this process has submitted. Tasks of one shape (resources, labels) share leases: the head grants the
/// right to use a worker process, and tasks then go straight to it. Where there is a channel to it, short tasks stand in
/// line there, about two milliseconds of them, so that neither side waits for the other; what stands in line behind a task
/// that takes long, or that waits for others, is taken back and goes elsewhere.
///
///   task:   [waits for its arguments] -> [queued] -> [sent under a lease] -> [done]
///                                            ^--- taken back; process died, tries left ---/
///   lease:  [asked] -granted-> [idle] <-> [busy];  idle for kLinger, or recalled by the head -> given back
///
/// Any thread submits, and who takes a reply sends the next task. The head is asked, and time is watched, by the loop.
class Tasks : public CallReceiver {
 public:
  static constexpr std::chrono::milliseconds kLinger{50};  ///< how long an idle lease is kept for the next task
  static constexpr std::size_t kMaxAsks = 64;              ///< leases asked for at once, per shape
  static constexpr int kDefaultRetries = 3;                ///< after the death of its process
  static constexpr std::chrono::microseconds kLine{2000};  ///< of work that stands in line at one lease
  static constexpr std::size_t kLongestLine = 4096;        ///< in tasks
  static constexpr std::chrono::milliseconds kShare{5};    ///< of work for which one more lease is worth asking
  static constexpr std::chrono::milliseconds kTick{5};     ///< how often idle and stuck leases are looked for

  Tasks(boost::asio::io_context& loop, HeadLink& head, Calls& calls, Resolver& resolver)
      : loop_(loop), head_(head), calls_(calls), resolver_(resolver), tick_(loop) {}

  /// Any thread.
  void submit(detail::CallSpec call, const detail::RequestOptions& options, const detail::ObjectPtr& result);
  /// The channels of leases; the version changes with them. Any thread.
  std::vector<OutChannelPtr> channels();
  std::uint64_t channels_version() const { return channels_version_.load(std::memory_order_acquire); }

  // ---- the loop's
  /// Cancelled, if it has not started; false if it is none of the tasks that wait or stand in line here.
  bool cancel(const detail::ObjectPtr& result);
  /// The head wants the lease back once its running task is done.
  void recalled(std::uint64_t lease);
  /// The lease's process has ended. -> which it was; nullptr if the lease is not ours any more.
  AddressPtr lost(std::uint64_t lease);
  /// There is a channel to a process that may have leases.
  void channel_opened(const OutChannelPtr& channel);

  void answered(DirectCall call, Outcome outcome, std::chrono::nanoseconds run_time) override;
  void lost(DirectCall call, bool started, const Failure& how) override;

 private:
  struct Shape;
  struct Task : Queued {
    OutgoingCall call;
    detail::ObjectPtr result;
    Shape* shape = nullptr;
    int tries_left = kDefaultRetries;
    std::uint32_t deaths = 0;
    std::uint64_t direct = 0;    // its id in the channel; 0: it went through the socket
    bool taking_back = false;    // through the socket: its callee is asked to give it up
    bool cancel_wanted = false;  // meanwhile, by the user
    bool behind_at_end = false;  // another one ran when the process ended
  };
  using TaskPtr = std::shared_ptr<Task>;
  struct Lease {
    std::uint64_t id = 0;
    AddressPtr process;
    OutChannelPtr channel;
    std::deque<TaskPtr> line;  // sent and not answered, in order; the first one runs
    bool recalled = false;
    bool ended = false;
    Clock::time_point idle_since;
    const Task* seen_first = nullptr;  // at the last tick
    bool stuck = false;                // it is still the first: nothing more stands in line behind it
  };
  struct Shape {
    detail::RequestOptions need;
    WithdrawingQueue<Task> queue;  // of those that wait for a lease
    std::list<Lease> leases;
    std::chrono::nanoseconds run_time{-1};  // of its tasks, a moving average; below 0: not known
    bool pump_posted = false;
    std::vector<std::uint64_t> asks;  // the loop's alone
  };

  Shape& shape_of(const detail::RequestOptions& options);
  OutChannelPtr enqueue(const TaskPtr& task);

  // under the mutex
  void dispatch(Shape& shape);
  Lease* with_room(Shape& shape) const;
  std::size_t longest_line(const Shape& shape, const Lease& lease) const;
  bool send_directly(Lease& lease, const TaskPtr& task);
  void post_pump(Shape& shape);
  Lease* find(Shape& shape, std::uint64_t lease) const;
  static void leave_line(Lease& lease, const Task* task);
  void measured(Shape& shape, std::chrono::nanoseconds run_time) const;
  void take_back(Shape& shape, Lease& lease);
  static void ask_back(Lease& lease);
  static void note_end(Lease& lease);
  std::size_t leases_wanted(const Shape& shape) const;
  void drop(Shape& shape, std::list<Lease>::iterator lease);
  bool has_leases() const;

  // the loop, not under the mutex
  void pump(Shape& shape);
  void send_by_loop(Shape& shape);
  void demand(Shape& shape);
  void ask(Shape& shape);
  void granted(Shape& shape, std::uint64_t lease, AddressPtr process);
  void refused(Shape& shape, const Failure& why);
  void retry_or_fail(const TaskPtr& task, Failure how);
  void give_back_idle(Shape& shape, Clock::time_point now);
  void look_for_stuck(Shape& shape);
  void watch();

  boost::asio::io_context& loop_;
  HeadLink& head_;
  Calls& calls_;
  Resolver& resolver_;
  boost::asio::steady_timer tick_;
  bool ticking_ = false;
  std::atomic<std::uint64_t> channels_version_{0};

  std::mutex mutex_;  // guards shapes_, and all in them but their asks
  std::map<std::string, Shape> shapes_;
  Shape* default_shape_ = nullptr;  // of tasks without options, which need no key
};

}  // namespace troupe::process
