#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/scheduler/effects.hpp>
#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/need.hpp>

/// What State tells about itself, for `status`, dashboards and tests. Values: they do not change
/// with the state.
namespace troupe::scheduler {

struct PendingView {
  RequestId request{};
  /// "lease of cpu 1", "actor 'parameters' of cpu 1", "gang 7 of 4 times cpu 1 (pack)".
  std::string what;
  JobId job{};
  ProcessId requester{};
  TimePoint since{};
  std::string reason;  ///< why it waits; never empty
};

struct NodeView {
  NodeId node{};
  Incarnation incarnation{};
  std::string name;
  Labels labels;
  Resources total;
  Resources free;
  std::vector<Amount> gpu_free;  ///< by GPU: 1 is untouched, 0 is taken
  std::size_t processes = 0;     ///< all of the following and those that are starting or stopping
  std::size_t idle = 0;
  std::size_t leases = 0;
  std::size_t actors = 0;
  std::size_t ranks = 0;
  std::size_t blocked = 0;  ///< processes that gave their CPU back
  std::string state = {};   ///< "ready", "drained for request 12"
  /// What actors and ranks hold for as long as they live, whether they do something or not: a part
  /// of what is not free.
  Resources reserved = {};
};

enum class ProcessState : unsigned char { Driver, Starting, Idle, InUse, Stopping };

struct ProcessView {
  ProcessId process{};
  NodeId node{};  ///< none: a driver
  JobId job{};
  ProcessState state = ProcessState::Starting;
  std::string use;  ///< "lease 4", "actor 9", "rank 2 of gang 3", or empty
  /// What is free for nobody else because of it: its need, without the CPU that it has lent while it
  /// waits for a result. Of one that is idle, and of a driver: nothing. One that is being stopped has
  /// no use any more, and holds it until it has ended.
  Resources held = {};
};

enum class Stage : unsigned char { Pending, Starting, Placed, Broken };

struct ActorView {
  ActorId actor{};
  RequestId request{};  ///< none once it is placed
  std::string name;
  std::string type;
  JobId job{};
  ProcessId requester{};
  Stage stage = Stage::Pending;
  ProcessId process{};  ///< none while pending
  NodeId node{};        ///< none while pending
};

struct GangView {
  GangId gang{};
  RequestId request{};  ///< none once it is placed
  JobId job{};
  ProcessId requester{};
  std::uint32_t size = 0;
  Stage stage = Stage::Pending;
  std::vector<Member> members;  ///< by rank; empty while pending; no process where a rank has died
};

struct JobView {
  JobId job{};
  ProcessId driver{};
  double weight = 1;
  bool ended = false;  ///< its last processes are being stopped
  std::size_t processes = 0;
  std::size_t leases = 0;
  std::size_t actors = 0;
  std::size_t gangs = 0;
  std::size_t pending = 0;
};

std::string_view to_string(ProcessState state);
std::string_view to_string(Stage stage);

}  // namespace troupe::scheduler
