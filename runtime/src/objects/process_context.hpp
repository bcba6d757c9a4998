#pragma once

#include <atomic>
#include <functional>

#include <troupe/detail/core.hpp>

#include "ids/address.hpp"

namespace troupe::runtime {

class StoreLink;

/// What refs and values need of the process that they are in. The session's Process is the one
/// there is; a test may have another. Any thread, unless said otherwise.
class ProcessContext {
 public:
  /// nullptr where this process is in no cluster.
  static ProcessContext* maybe() { return current_.load(std::memory_order_acquire); }
  /// Throws Refused where this process is in no cluster.
  static ProcessContext& current();

  virtual ~ProcessContext() = default;
  ProcessContext(const ProcessContext&) = delete;
  ProcessContext& operator=(const ProcessContext&) = delete;

  virtual ProcessId id() const = 0;
  /// Has `then` called on the loop.
  virtual void on_loop(std::function<void()> then) = 0;
  virtual bool is_on_loop() const = 0;
  virtual StoreLink& store() = 0;
  /// On the thread that runs the calls of others, in a call: whose it is, and its result with it. None: of a process of another
  /// job, which no result here can be of.
  virtual ProcessId caller() const = 0;
  /// This process runs the calls of others: it may hold a CPU for them.
  virtual bool runs_calls() const = 0;
  /// What this process holds is held for user code: a call of others runs, or it is an actor's.
  virtual bool has_call() const = 0;
  /// User code waits: the CPU of this process may go to others. Which waits: detail::CpuUse.
  virtual void give_cpu_back() = 0;
  /// The same thread has what it waited for, or waits on and lends nothing more. -> completed once
  /// it may go on, or with why it has no CPU.
  virtual detail::ObjectPtr take_cpu_again() = 0;
  /// User code goes on, after give_cpu_back().
  virtual void has_cpu_again() {}

  /// A user's thread waits for something of this process, which is not destroyed meanwhile (see
  /// waiting_threads). Throws std::logic_error on the loop's thread, which would bring what it waits
  /// for.
  class Waiting {
   public:
    explicit Waiting(ProcessContext& process) : process_(process) {
      if (process.is_on_loop()) refuse_on_loop();
      process_.waiting_.fetch_add(1);
    }
    ~Waiting() { process_.waiting_.fetch_sub(1); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    ProcessContext& process_;
  };
  int waiting_threads() const { return waiting_.load(); }
  /// Throws std::logic_error.
  [[noreturn]] static void refuse_on_loop();

 protected:
  ProcessContext() = default;
  /// From now on, maybe() and current() return `process`; nullptr: nothing.
  static void make_current(ProcessContext* process);

 private:
  /// In a forked copy: it is in no cluster, and what it has of the session that it was copied with
  /// says nothing to anybody. -> whether it was in one.
  static bool leave_in_copy();

  static std::atomic<ProcessContext*> current_;
  std::atomic<int> waiting_{0};
};

}  // namespace troupe::runtime
