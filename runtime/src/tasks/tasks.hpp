#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "calls/calls.hpp"
#include "calls/resolver.hpp"
#include "objects/doorbell.hpp"
#include "os/now_and_then.hpp"
#include "tasks/lease_book.hpp"

namespace troupe::runtime {

/// Performs what the LeaseBook says: sends tasks and takes them back, asks the head for leases and
/// gives them back.
///
/// Any thread submits, and who takes a reply sends the next task through its channel. What goes
/// through sockets, the head and time are the loop's. The book is under a mutex; what it wants done
/// through channels is done under it too, what ends a task or concerns the head after.
class Tasks : public CallReceiver {
 public:
  static constexpr int kDefaultRetries = 3;  ///< after the death of its process

  Tasks(boost::asio::io_context& loop, HeadLink& head, Calls& calls, Resolver& resolver)
      : loop_(loop), head_(head), calls_(calls), resolver_(resolver), tick_(loop) {}

  /// Any thread.
  void submit(detail::CallSpec call, const detail::RequestOptions& options,
              const detail::ObjectPtr& result);
  /// Of one of these tasks, for people: "it runs in process 7"; empty once it is over. Any thread.
  std::string state_of(const detail::Object& result);
  /// The channels of leases; the version changes with them. Any thread.
  std::vector<OutChannelPtr> channels();
  std::uint64_t channels_version() const {
    return channels_version_.load(std::memory_order_acquire);
  }

  // ---- the loop's
  /// Cancelled, if it has not started; false if it is none of the tasks of this process.
  bool cancel(const detail::ObjectPtr& result);
  /// The head wants the lease back once its running task is done.
  void recalled(LeaseId lease);
  /// The lease's process has ended. -> which it was; none if the lease is not ours any more. What was
  /// sent there is heard of from its calls.
  ProcessId lost(LeaseId lease);
  /// There is a channel to a process that may have leases.
  void channel_opened(const OutChannelPtr& channel);

  void answered(PendingCall call, Outcome outcome, std::chrono::nanoseconds run_time) override;
  void lost(PendingCall call, Progress progress, const Failure& how) override;

 private:
  struct Task : tasks::BookedTask {
    OutgoingCall call;
    detail::ObjectPtr result;
    std::uint64_t direct = 0;  // its id in the channel; 0: it went through the socket
  };
  struct Lease : tasks::Lease {
    AddressPtr address;
    OutChannelPtr channel;
  };
  using TaskPtr = std::shared_ptr<Task>;
  using Effects = tasks::Effects;

  static Task& mine(tasks::BookedTask& task) { return static_cast<Task&>(task); }
  static Lease& mine(tasks::Lease& lease) { return static_cast<Lease&>(lease); }
  PendingCall direct_of(Task& task);

  /// What was made of an event under the mutex: what is left to do without it.
  template <class Event>
  void apply(Event&& event);
  void perform_here(Effects& effects);
  bool send_through_channel(Task& task);
  void perform(tasks::Send& send);
  void perform(tasks::TakeBack& back);
  void perform(tasks::Fail& end);
  void perform(tasks::Ask& ask);
  void perform(tasks::Withdraw& withdraw);
  void perform(tasks::GiveBack& back);
  void perform(tasks::Warn& warning);
  void granted(tasks::AskId ask, wire::LeaseGrant::Reader grant);
  void post_turn();
  void watch();

  boost::asio::io_context& loop_;
  HeadLink& head_;
  Calls& calls_;
  Resolver& resolver_;
  boost::asio::steady_timer tick_;
  bool ticking_ = false;                                   // the loop's
  std::unordered_map<tasks::AskId, HeadRequestId> asked_;  // the loop's
  std::atomic<std::uint64_t> channels_version_{0};

  std::mutex mutex_;  // guards what follows
  tasks::LeaseBook book_;
  os::NowAndThen checks_;
  bool turn_posted_ = false;
};

}  // namespace troupe::runtime
