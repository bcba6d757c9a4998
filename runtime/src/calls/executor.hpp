#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "calls/channel/in_channel.hpp"
#include "calls/deaths/reply_log.hpp"
#include "objects/object.hpp"
#include "os/ticks.hpp"

namespace troupe::runtime {

class ProcessContext;

/// One call to run, or news of a channel: pushed on the loop's thread, handled on the executor's.
struct Work {
  enum class Kind : std::uint8_t { Task = 0, Constructor = 1, Method = 2 };
  Kind kind = Kind::Task;
  const detail::Function* function = nullptr;
  ProcessId caller{};
  std::vector<detail::Payload> arguments = {};
  /// The executor begins it, or the loop gives it up for who cancelled it: whichever comes first.
  enum class Stage : std::uint8_t { Waiting, Begun, GivenUp };
  std::shared_ptr<std::atomic<Stage>> stage = {};
  /// The outcome, how long the call ran, and where the executor has put the reply in its log.
  using Done = std::function<void(const Outcome&, std::chrono::nanoseconds, ReplyPlace kept)>;
  Done done = {};  // on the loop's thread; not if given up
  /// The content of a call whose place in the order stands in a channel.
  struct Place {
    ProcessId caller{};
    std::uint64_t call = 0;
    auto operator<=>(const Place&) const = default;
  };
  std::optional<Place> place = {};
  bool by_value = false;     // its caller is of another job
  std::uint64_t number = 0;  // of a call that came through a socket: ascends for each caller
  std::uint64_t called = 0;  // by the clock on its caller's wall: os::unix_ns(); 0: not said
  // Instead of a call:
  InChannelPtr attach = {};
  InChannelPtr detach = {};
};

/// Runs user code in a worker process, one call at a time: those that the loop pushes and those
/// that stand in channels, of one caller in its order; methods wait for the constructor. The loop's
/// list is taken whole: no lock.
///
/// A call begins once the reply of the call before it is out of this process (ReplyLog, 1).
///
/// A channel whose next call cannot run yet (its content or the constructor is still to come) is
/// stalled until the loop pushes something.
class Executor {
 public:
  /// `place`: "process 7 (pid 4711) on node 2", for errors. `write_out`: writes what was answered
  /// to the caller's socket, and calls `done` then; the loop.
  using WriteOut = std::function<void(ProcessId caller, std::function<void()> done)>;
  Executor(boost::asio::io_context& loop, std::string place, WriteOut write_out)
      : loop_(loop), place_(std::move(place)), write_out_(std::move(write_out)) {}

  /// From the next call that is pushed on, for errors; the loop's.
  void set_place(std::string place) { place_ = std::move(place); }
  /// Where it is noted what came through sockets, and how it was answered, before run().
  void keep_record(ExecutionRecord record);
  void push(Work work);
  /// Calls may come through this channel, behind all that was pushed before.
  void attach(InChannelPtr channel) { push(Work{.attach = std::move(channel)}); }
  /// Its caller has ended.
  void detach(InChannelPtr channel) { push(Work{.detach = std::move(channel)}); }
  /// The outcome of a call leaves through its caller's socket: `send` is called on the loop. Returns
  /// once the reply is out of this process (ReplyLog, 1). On the executor's thread.
  void answer_through_socket(ProcessId caller, std::uint64_t call, Outcome outcome,
                             std::chrono::nanoseconds run_time, Work::Done send);
  /// The loop: the caller has the replies that were kept for it up to this one.
  void on_replies_arrived(ProcessId caller, ReplyPlace last);
  /// The loop: the caller needs no replies any more.
  void on_caller_ended(ProcessId caller);
  /// run() would find something at once. On the thread that runs it.
  bool has_work() const;
  /// On the thread that runs user code; never returns.
  [[noreturn]] void run();
  /// True on the executor's thread of this process.
  static bool is_this_thread();
  /// On the executor's thread, in a call: whose it is.
  static ProcessId caller();
  /// run() was called. Any thread.
  bool runs_calls() const { return runs_calls_.load(std::memory_order_relaxed); }
  /// A call runs, or this is the process of an actor: what the process holds is held for user code.
  /// Any thread.
  bool has_call() const { return has_call_.load(std::memory_order_relaxed); }
  /// On the executor's thread: user code waits, and goes on. For `troupe timeline`.
  void on_wait_begun();
  void on_wait_ended();

 private:
  /// A call as it is about to run: who made it, and when.
  struct Arrival {
    Work::Kind kind = Work::Kind::Task;
    ProcessId owner{};  // of the result; none: of another job
    ProcessId caller{};
    os::Ticks called = 0;              // 0: not known
    std::uint64_t called_unix_ns = 0;  // in its place: through a socket
    ExecutionMark mark = {};
  };
  struct Node {
    Work work;
    Node* next = nullptr;
  };
  struct Channel {
    InChannelPtr in;
    bool stalled = false;
  };

  void before_sleep();
  std::vector<Work> take();
  void handle(Work work);
  void call(Work work, const ExecutionMark& mark = {});
  void serve(Channel& channel);
  bool run_next(InChannel& channel, const InChannel::Call& next);
  bool run_via_socket(InChannel& channel, const InChannel::Call& next);
  void after_constructor();
  bool before_constructor() const { return !actor_ && !construct_failure_; }
  /// note_end() is to follow: where somebody waits for the reply, behind that.
  Outcome perform(const Arrival& arrival, const detail::Function& function,
                  std::span<detail::Payload> arguments);
  void note_begin(const Arrival& arrival, const detail::Function& function, os::Ticks now);
  void note_end(bool failed);
  /// Of the call that was performed last, with the time that its arguments took to come.
  std::chrono::nanoseconds run_time() const { return os::duration_of(ended_ - started_); }
  Outcome run_user_code(Work::Kind kind, const detail::Function& function,
                        std::span<detail::Payload> arguments);
  void name_actor(const detail::Function& constructor);
  Failure describe(const detail::Function& function) const;  // the exception in flight

  boost::asio::io_context& loop_;
  std::string place_;
  const WriteOut write_out_;
  std::atomic<Node*> pushed_{nullptr};
  std::atomic<bool> runs_calls_{false}, has_call_{false};

  // the executor's thread only
  const ProcessContext* process_ = nullptr;  // whose calls these are
  std::optional<ExecutionRecord> record_;
  std::optional<ReplyLog> replies_;  // in the record's memory; of its two ends one is the loop's
  std::binary_semaphore written_{0};
  std::shared_ptr<void> actor_;
  std::optional<Failure> construct_failure_;
  std::vector<Work> before_constructor_;
  std::vector<Channel> channels_;
  std::map<Work::Place, Work> arrived_;      // whose turn in their channel has not come
  std::vector<detail::Payload> arguments_;   // of the call that runs from a channel
  const detail::Function* last_ = nullptr;   // that was looked up
  const detail::Function* named_ = nullptr;  // in the record
  os::Ticks started_ = 0;                    // the call that was performed last
  os::Ticks ended_ = 0;
  bool at_its_end_ = false;  // nothing was waited for since: the next call begins as that one ended
};

}  // namespace troupe::runtime
