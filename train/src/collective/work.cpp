#include <troupe/train/work.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "api/bounded.hpp"
#include "collective/arguments.hpp"
#include "collective/call.hpp"

namespace troupe::train {
namespace detail {

/// What the works of a queue share with it. The mutex guards all that changes of them.
struct WorkBoard {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::string running;  // the work that runs; empty: none
};

///   [begun] --its turn--> [running] --the call returns or throws--> [over]
///      |-------------- a work before it has failed -----------------^
struct WorkState {
  const std::shared_ptr<WorkBoard> board;
  const std::string what;
  std::function<void()> call;
  bool over = false;
  std::exception_ptr error = {};
};

/// The thread that makes a queue's calls, one after the other.
class WorkThread {
 public:
  explicit WorkThread(Communicator& communicator)
      : communicator_(communicator), exceptions_(std::uncaught_exceptions()) {}
  ~WorkThread();
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  std::shared_ptr<WorkState> begin(Announcement what, std::function<void()> call);
  std::size_t pending() const;
  void wait_all();
  Communicator& communicator() const { return communicator_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  void run();
  void finish(Lock& lock, WorkState& work);

  Communicator& communicator_;
  const int exceptions_;  // on their way when the queue was made
  const std::shared_ptr<WorkBoard> board_ = std::make_shared<WorkBoard>();
  // Guarded by the board's mutex.
  std::deque<std::shared_ptr<WorkState>> begun_;  // the first may be running
  std::exception_ptr error_;                      // of the first work that failed
  bool stopping_ = false;
  std::uint64_t works_ = 0;
  std::thread thread_;  // of the owner: made with the first work
};

WorkThread::~WorkThread() {
  if (std::uncaught_exceptions() > exceptions_) {
    communicator_.abort(
        "an exception left the function that held the WorkQueue of the communicator");
  }
  {
    const Lock lock(board_->mutex);
    stopping_ = true;
  }
  board_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<WorkState> WorkThread::begin(Announcement what, std::function<void()> call) {
  Lock lock(board_->mutex);
  board_->changed.wait(lock, [&] { return begun_.size() < WorkQueue::kMostBegun; });
  const auto number = works_++;
  auto work = std::make_shared<WorkState>(
      WorkState{.board = board_,
                .what = fmt::format("{}, work {} of its queue", call_in_words(what), number),
                .call = std::move(call)});
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });  // it waits for the lock
  begun_.push_back(work);
  lock.unlock();
  board_->changed.notify_all();
  return work;
}

void WorkThread::run() {
  Lock lock(board_->mutex);
  for (;;) {
    board_->changed.wait(lock, [&] { return stopping_ || !begun_.empty(); });
    if (begun_.empty()) return;
    const auto work = begun_.front();
    if (!error_) finish(lock, *work);
    work->error = error_;
    work->over = true;
    work->call = {};
    begun_.pop_front();
    board_->changed.notify_all();
  }
}

/// Makes the call of the work, without the lock.
void WorkThread::finish(Lock& lock, WorkState& work) {
  board_->running = work.what;
  lock.unlock();
  std::exception_ptr error;
  try {
    work.call();
  } catch (...) {
    error = std::current_exception();
    // The works behind it are not done here, so that no rank may wait for them.
    communicator_.abort(text_of(error));
  }
  lock.lock();
  board_->running.clear();
  error_ = error;
}

std::size_t WorkThread::pending() const {
  const Lock lock(board_->mutex);
  return begun_.size();
}

void WorkThread::wait_all() {
  Lock lock(board_->mutex);
  board_->changed.wait(lock, [&] { return begun_.empty(); });
  if (error_) std::rethrow_exception(error_);
}

}  // namespace detail

// ---- Work ---------------------------------------------------------------------------------------

Work::Work(std::shared_ptr<detail::WorkState> state) : state_(std::move(state)) {}

bool Work::done() const {
  const std::lock_guard lock(state_->board->mutex);
  return state_->over;
}

void Work::wait() const {
  std::unique_lock lock(state_->board->mutex);
  state_->board->changed.wait(lock, [&] { return state_->over; });
  if (state_->error) std::rethrow_exception(state_->error);
}

void Work::wait_for(std::chrono::milliseconds limit) const {
  std::unique_lock lock(state_->board->mutex);
  if (!state_->board->changed.wait_for(lock, bounded(limit), [&] { return state_->over; })) {
    const auto& running = state_->board->running;
    const bool is_at_it = running == state_->what;
    throw TimedOut(Failure{
        .kind = Failure::Kind::TimedOut,
        .message =
            fmt::format("{} is not over after {} ms, and goes on; {}", state_->what, limit.count(),
                        is_at_it          ? "this rank waits in it for the other ranks"
                        : running.empty() ? "its turn has not come"
                                          : "its turn comes after " + running)});
  }
  if (state_->error) std::rethrow_exception(state_->error);
}

// ---- WorkQueue ----------------------------------------------------------------------------------

WorkQueue::WorkQueue(Communicator& communicator)
    : thread_(std::make_unique<detail::WorkThread>(communicator)) {}

WorkQueue::~WorkQueue() = default;

Work WorkQueue::all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) {
  auto& comm = thread_->communicator();
  check_all_reduce(data, count, type, op);
  return Work(
      thread_->begin({.count = count, .kind = CallKind::AllReduce, .type = type, .op = op},
                     [&comm, data, count, type, op] { comm.all_reduce(data, count, type, op); }));
}

Work WorkQueue::broadcast(void* data, std::size_t count, DataType type, int root) {
  auto& comm = thread_->communicator();
  check_broadcast(comm, data, count, type, root);
  return Work(thread_->begin(
      {.count = count, .kind = CallKind::Broadcast, .type = type, .root = root},
      [&comm, data, count, type, root] { comm.broadcast(data, count, type, root); }));
}

Work WorkQueue::all_gather(const void* in, void* out, std::size_t count, DataType type) {
  auto& comm = thread_->communicator();
  check_all_gather(comm, in, out, count, type);
  return Work(
      thread_->begin({.count = count, .kind = CallKind::AllGather, .type = type},
                     [&comm, in, out, count, type] { comm.all_gather(in, out, count, type); }));
}

Work WorkQueue::all_gather(const void* in, void* out, std::span<const std::size_t> counts,
                           DataType type) {
  auto& comm = thread_->communicator();
  check_all_gather(comm, in, out, counts, type);
  std::vector<std::size_t> own(counts.begin(), counts.end());
  const auto all = std::accumulate(own.begin(), own.end(), std::size_t{0});
  return Work(thread_->begin({.count = all, .kind = CallKind::AllGather, .type = type},
                             [&comm, in, out, own = std::move(own), type] {
                               comm.all_gather(in, out, std::span(own), type);
                             }));
}

Work WorkQueue::reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                       int root) {
  auto& comm = thread_->communicator();
  check_reduce(comm, in, out, count, type, op, root);
  return Work(thread_->begin(
      {.count = count, .kind = CallKind::Reduce, .type = type, .op = op, .root = root},
      [&comm, in, out, count, type, op, root] { comm.reduce(in, out, count, type, op, root); }));
}

Work WorkQueue::gather(const void* in, void* out, std::size_t count, DataType type, int root) {
  auto& comm = thread_->communicator();
  check_gather(comm, in, out, count, type, root);
  return Work(thread_->begin(
      {.count = count, .kind = CallKind::Gather, .type = type, .root = root},
      [&comm, in, out, count, type, root] { comm.gather(in, out, count, type, root); }));
}

Work WorkQueue::scatter(const void* in, void* out, std::size_t count, DataType type, int root) {
  auto& comm = thread_->communicator();
  check_scatter(comm, in, out, count, type, root);
  return Work(thread_->begin(
      {.count = count, .kind = CallKind::Scatter, .type = type, .root = root},
      [&comm, in, out, count, type, root] { comm.scatter(in, out, count, type, root); }));
}

Work WorkQueue::reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                               ReduceOp op) {
  auto& comm = thread_->communicator();
  check_reduce_scatter(comm, in, out, count, type, op);
  return Work(thread_->begin(
      {.count = count, .kind = CallKind::ReduceScatter, .type = type, .op = op},
      [&comm, in, out, count, type, op] { comm.reduce_scatter(in, out, count, type, op); }));
}

Work WorkQueue::all_to_all(const void* in, void* out, std::size_t count, DataType type) {
  auto& comm = thread_->communicator();
  check_all_to_all(comm, in, out, count, type);
  return Work(
      thread_->begin({.count = count, .kind = CallKind::AllToAll, .type = type},
                     [&comm, in, out, count, type] { comm.all_to_all(in, out, count, type); }));
}

Work WorkQueue::barrier() {
  auto& comm = thread_->communicator();
  return Work(thread_->begin({.kind = CallKind::Barrier}, [&comm] { comm.barrier(); }));
}

std::size_t WorkQueue::pending() const { return thread_->pending(); }
void WorkQueue::wait_all() { thread_->wait_all(); }

}  // namespace troupe::train
