#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <troupe/scheduler/effects.hpp>
#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/need.hpp>
#include <troupe/scheduler/snapshot.hpp>

#include "policies/candidate.hpp"

/// The records that the cluster is made of. What is iterated is kept in order, or brought into it by in_order, so that a
/// replay makes the same effects.
namespace troupe::scheduler {

/// A copy of a set that is large and seldom walked through.
template <class Id>
std::set<Id> in_order(const std::unordered_set<Id>& ids) {
  return {ids.begin(), ids.end()};
}

enum class Kind : unsigned char { Lease, Actor, Gang };

/// Requests of one shape fit the same nodes: if the first does not fit now, none does.
struct ShapeKey {
  Kind kind = Kind::Lease;
  Need need;
  std::uint32_t size = 1;
  Strategy strategy = Strategy::Pack;

  Ask ask() const { return {need, size, strategy}; }
  friend std::strong_ordering operator<=>(const ShapeKey&, const ShapeKey&) = default;
  friend bool operator==(const ShapeKey&, const ShapeKey&) = default;
};
using ShapePtr = std::shared_ptr<const ShapeKey>;

/// Nodes kept for a request that has waited long. Held, then lifted for as long, then held for twice as long.
struct Reservation {
  std::map<NodeId, std::size_t> ranks;  ///< empty while lifted
  TimePoint until{};
  Duration term{};
  bool held() const { return !ranks.empty(); }
};

struct Request {
  RequestId id = 0;
  std::uint64_t sequence = 0;  ///< order of arrival
  JobId job = 0;
  ProcessId requester = 0;
  ShapePtr shape;
  std::uint64_t subject = 0;  ///< the actor or gang; the lease, once its process is chosen
  TimePoint since{};
  bool waiting = true;                     ///< else its processes are starting
  std::optional<TimePoint> patient_until;  ///< asked while no node was there: how long it may be impossible
  std::optional<Reservation> reservation;
};

enum class Role : unsigned char { None, Lease, Actor, Rank };

/// Whether the user's code in a process waits, and for what.
enum class Wait : unsigned char {
  Runs,
  Blocked,   ///< for a result; its CPU is with the node
  Resuming,  ///< for its CPU
  Owing,     ///< runs without its CPU, and gets the next one
};

struct Process {
  ProcessId id = 0;
  JobId job = 0;
  NodeId node = 0;  ///< 0: a driver
  ProcessState state = ProcessState::Starting;
  Role role = Role::None;
  std::uint64_t subject = 0;  ///< the lease, actor or gang that uses it
  Rank rank = 0;
  bool sees_gpus = false;  ///< then it is never used twice
  Share held;
  Wait wait = Wait::Runs;
  Amount lent;        ///< the CPU to get back; not part of `held`
  TimePoint since{};  ///< of the wait, or of being idle

  // What it asked for, which shares its fate.
  std::unordered_set<RequestId> requests;
  std::unordered_set<LeaseId> leases;
  std::unordered_set<ActorId> actors;
  std::unordered_set<GangId> gangs;

  bool keeps_others() const { return !leases.empty() || !actors.empty() || !gangs.empty() || !requests.empty(); }
};

struct Lease {
  LeaseId id = 0;
  RequestId request = 0;  ///< while its process starts
  ProcessId requester = 0;
  ProcessId process = 0;
  ShapePtr shape;
  bool granted = false;
  bool recalled = false;
  TimePoint granted_at{};
};

struct Actor {
  ActorId id = 0;
  RequestId request = 0;  ///< while not placed
  JobId job = 0;
  ProcessId requester = 0;
  std::string name;
  Stage stage = Stage::Pending;
  ProcessId process = 0;
};

struct Gang {
  GangId id = 0;
  RequestId request = 0;  ///< while not placed
  JobId job = 0;
  ProcessId requester = 0;
  std::uint32_t size = 0;
  Stage stage = Stage::Pending;
  std::vector<Member> members;  ///< process 0 where the rank has died
  std::size_t ready = 0;        ///< while starting
  std::size_t alive = 0;        ///< once placed
};

struct Job {
  JobId id = 0;
  ProcessId driver = 0;
  bool ended = false;
  std::unordered_set<ProcessId> processes;  ///< with the driver
};

struct Claim {
  Resources resources;
  ShapePtr shape;  ///< of the request that it is kept for
};

struct Node {
  NodeId id = 0;
  Incarnation incarnation = 0;
  std::string name;
  Labels labels;
  Capacity idle;
  Capacity free;
  bool lost = false;  ///< being taken apart
  std::set<ProcessId> processes;
  std::map<JobId, std::vector<ProcessId>> spare;  ///< processes without a role; the last one became so last
  std::size_t spare_count = 0;
  std::size_t lease_processes = 0;
  std::vector<ProcessId> resuming;    ///< first come, first served
  std::vector<ProcessId> owing;       ///< the same
  std::map<RequestId, Claim> claims;  ///< what is kept here for whom
};

}  // namespace troupe::scheduler
