#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "calls/executor.hpp"
#include "calls/peers/peers.hpp"
#include "objects/exports.hpp"
#include "objects/store_link.hpp"

namespace troupe::runtime {

/// Serves what other processes ask of this one through a socket: calls (handed to the executor, and
/// answered), their cancellation, and the values that this process owns. Belongs to the loop.
///
///   a call: [waiting] --the executor begins it--> [begun] --> answered once
///               '--cancelled, or given up by its caller--> answered once, never begun
class CallServer {
 public:
  struct Callbacks {
    /// The constructor of a gang's rank has arrived, before it runs.
    std::function<void(wire::GangInfo::Reader)> on_gang;
  };
  /// `place`: "process 7 (pid 4711) on node 2", for errors. `runs_calls`: false in a driver, which
  /// refuses all.
  CallServer(Peers& peers, Exports& exports, Executor& executor, StoreLink& store,
             std::string place, bool runs_calls, Callbacks callbacks)
      : peers_(peers),
        exports_(exports),
        executor_(executor),
        store_(store),
        place_(std::move(place)),
        runs_calls_(runs_calls),
        callbacks_(std::move(callbacks)) {}

  void on_call(ProcessId caller, wire::Call::Reader call);
  void on_cancel(ProcessId caller, std::uint64_t call);
  void on_fetch(ProcessId caller, wire::Fetch::Reader fetch);
  /// The caller has ended.
  void forget(ProcessId caller);

  /// The outcome of a call, whichever way it came, to its caller's socket. `kept`: where the executor
  /// has it in its log.
  void send_outcome(ProcessId caller, std::uint64_t call, const Outcome& outcome,
                    std::chrono::nanoseconds run_time, ReplyPlace kept);

 private:
  /// A call without an answer yet.
  struct Running {
    std::shared_ptr<std::atomic<Work::Stage>> stage;
    std::string_view label;
    Work::Done reply;
  };

  void on_given_up_call(ProcessId caller, wire::Call::Reader call);
  void forget(ProcessId caller, std::uint64_t call);
  void write_outcome(wire::Outcome::Builder into, const Outcome& outcome, ProcessId to);
  void free_result(const Outcome& outcome);

  Peers& peers_;
  Exports& exports_;
  Executor& executor_;
  StoreLink& store_;
  const std::string place_;
  const bool runs_calls_;
  const Callbacks callbacks_;
  std::unordered_map<ProcessId, std::unordered_map<std::uint64_t, Running>> running_;
};

}  // namespace troupe::runtime
