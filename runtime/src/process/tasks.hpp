#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "process/calls.hpp"
#include "process/doorbell.hpp"
#include "process/resolver.hpp"

namespace troupe::process {

/// The tasks that this process has submitted. Tasks of one shape (resources, labels) share leases: the head grants the
/// right to use a worker process, and tasks then go straight to it, one at a time. Belongs to the loop.
///
///   task:   [waits for its arguments] -> [queued] -> [running under a lease] -> [done]
///                                            ^--- process died, tries left ---/
///   lease:  [asked] -granted-> [idle] <-> [busy];  idle for kLinger, or recalled by the head -> given back
class Tasks {
 public:
  static constexpr std::chrono::milliseconds kLinger{50};  ///< how long an idle lease is kept for the next task
  static constexpr std::size_t kMaxAsks = 64;              ///< leases asked for at once, per shape
  static constexpr int kDefaultRetries = 3;                ///< after the death of its process

  Tasks(boost::asio::io_context& loop, HeadLink& head, Calls& calls, Resolver& resolver)
      : loop_(loop), head_(head), calls_(calls), resolver_(resolver) {}

  void submit(detail::CallSpec call, const detail::RequestOptions& options, detail::ObjectPtr result);
  /// The head wants the lease back once its running task is done.
  void recalled(std::uint64_t lease);
  /// The lease's process has ended. -> which it was; nullptr if the lease is not ours any more.
  AddressPtr lost(std::uint64_t lease);

 private:
  struct Task {
    OutgoingCall call;
    detail::ObjectPtr result;
    int tries_left = kDefaultRetries;
    std::uint32_t deaths = 0;
  };
  using TaskPtr = std::shared_ptr<Task>;
  struct Lease {
    AddressPtr process;
    TaskPtr running;
    bool recalled = false;
    Clock::time_point idle_since;
  };
  struct Shape {
    detail::RequestOptions need;
    std::deque<TaskPtr> queue;
    std::vector<std::uint64_t> asks;
    std::map<std::uint64_t, Lease> leases;
    std::vector<std::uint64_t> idle;
    std::unique_ptr<boost::asio::steady_timer> timer;
  };

  Shape& shape_of(const detail::RequestOptions& options);
  void enqueue(Shape& shape, const TaskPtr& task);
  void pump(Shape& shape);
  void ask(Shape& shape);
  void granted(Shape& shape, std::uint64_t lease, AddressPtr process);
  void refused(Shape& shape, const Failure& why);
  void start(Shape& shape, std::uint64_t lease, const TaskPtr& task);
  void finished(Shape& shape, std::uint64_t lease, const TaskPtr& task, Outcome outcome);
  void retry_or_fail(Shape& shape, const TaskPtr& task, Failure how);
  void rest(Shape& shape, std::uint64_t lease);
  void give_back(Shape& shape, std::uint64_t lease);
  void watch_idle(Shape& shape);

  boost::asio::io_context& loop_;
  HeadLink& head_;
  Calls& calls_;
  Resolver& resolver_;
  std::map<std::string, Shape> shapes_;
};

}  // namespace troupe::process
