#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

namespace detail {
struct WorkState;
class WorkThread;
}  // namespace detail

/// A collective that a WorkQueue was given: PyTorch's `Work`. A value, whose copies are the same
/// work; it may outlive the queue. Any thread.
class Work {
 public:
  /// Whether the work is over, with its result or with an error. Never waits.
  bool done() const;
  /// Returns once the result is in its buffer. Throws what the call of the communicator threw,
  /// every time that it is asked; GangBroken where the queue was ended before it came to the work.
  void wait() const;
  /// As wait(), for at most so long. Throws TimedOut, which names the work and the one that runs;
  /// the work goes on, and its buffers still belong to it.
  void wait_for(std::chrono::milliseconds limit) const;

 private:
  friend class WorkQueue;
  explicit Work(std::shared_ptr<detail::WorkState> state);
  std::shared_ptr<detail::WorkState> state_;
};

/// Collectives in the background, so that a rank computes while its data travels:
///
///   WorkQueue queue(comm);
///   const auto gathered = queue.all_gather(mine, all, count, DataType::Float32);
///   compute();
///   gathered.wait();
///
///   1 Order    Works are done one after the other, in the order in which they were begun. All
///              ranks begin the same works in the same order, as with any collective.
///   2 Alone    While a work is not over, nobody calls the communicator, but for abort(). A call
///              that comes while a work runs throws std::logic_error; one that is inside the
///              communicator when a work's turn comes makes that work fail. After wait_all() the
///              communicator takes calls.
///   3 Failed   is a work whose call throws, and the communicator has ended. All works that were
///              begun behind it fail with the same error. Arguments that cannot be are refused by
///              the call that begins the work, and begin none.
///   4 Left     The destructor waits for the works. Where it runs because an exception leaves the
///              function, it ends the communicator instead: the other ranks of the node get
///              GangBroken, which names this one, and those of other nodes once the communicator is
///              destroyed.
///
/// Deadlines are those of the communicator (HostOptions::timeout), and count from when the work's
/// turn comes. Buffers belong to the work until it is over. For `nccl` inputs are as the
/// communicator's calls want them when the work's turn comes, that is written on the default stream
/// or complete, and the work waits for all that was put on the default stream by then: computing
/// overlaps on another stream.
///
/// `host` and `nccl` alike: a thread of the queue makes the calls. Cost: two wake-ups for each
/// work. One thread begins works; any may wait.
class WorkQueue {
 public:
  /// Most works that are begun and not over; a call that would begin one more waits.
  static constexpr std::size_t kMostBegun = 1024;

  /// `communicator` outlives the queue.
  explicit WorkQueue(Communicator& communicator);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  Work all_reduce(void* data, std::size_t count, DataType type, ReduceOp op = ReduceOp::Sum);
  Work broadcast(void* data, std::size_t count, DataType type, int root);
  Work all_gather(const void* in, void* out, std::size_t count, DataType type);
  /// `counts` are copied.
  Work all_gather(const void* in, void* out, std::span<const std::size_t> counts, DataType type);
  Work reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                      ReduceOp op = ReduceOp::Sum);
  Work all_to_all(const void* in, void* out, std::size_t count, DataType type);
  Work reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, int root);
  Work gather(const void* in, void* out, std::size_t count, DataType type, int root);
  Work scatter(const void* in, void* out, std::size_t count, DataType type, int root);
  Work barrier();

  /// Works that are begun and not over.
  std::size_t pending() const;
  /// Returns once all are over. Throws what the first that failed threw.
  void wait_all();

 private:
  std::unique_ptr<detail::WorkThread> thread_;
};

}  // namespace troupe::train
