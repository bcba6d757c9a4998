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
  RequestId request = 0;
  /// "lease of cpu 1", "actor 'parameters' of cpu 1", "gang 7 of 4 times cpu 1 (pack)".
  std::string what;
  JobId job = 0;
  ProcessId requester = 0;
  TimePoint since{};
  std::string reason;  ///< why it waits; never empty
};

struct NodeView {
  NodeId node = 0;
  Incarnation incarnation = 0;
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
};

enum class ProcessState : unsigned char { Driver, Starting, Idle, InUse, Stopping };

struct ProcessView {
  ProcessId process = 0;
  NodeId node = 0;  ///< 0: a driver
  JobId job = 0;
  ProcessState state = ProcessState::Starting;
  std::string use;  ///< "lease 4", "actor 9", "rank 2 of gang 3", or empty
};

enum class Stage : unsigned char { Pending, Starting, Placed, Broken };

struct ActorView {
  ActorId actor = 0;
  RequestId request = 0;  ///< 0 once it is placed
  std::string name;
  std::string type;
  JobId job = 0;
  ProcessId requester = 0;
  Stage stage = Stage::Pending;
  ProcessId process = 0;  ///< 0 while pending
  NodeId node = 0;        ///< 0 while pending
};

struct GangView {
  GangId gang = 0;
  RequestId request = 0;  ///< 0 once it is placed
  JobId job = 0;
  ProcessId requester = 0;
  std::uint32_t size = 0;
  Stage stage = Stage::Pending;
  std::vector<Member> members;  ///< by rank; empty while pending; process 0 where a rank has died
};

struct JobView {
  JobId job = 0;
  ProcessId driver = 0;
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
