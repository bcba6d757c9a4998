#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/container_hash/hash.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <troupe/scheduler/effects.hpp>
#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/need.hpp>
#include <troupe/scheduler/snapshot.hpp>

#include "policies/candidate.hpp"
#include "tables/claims.hpp"
#include "tables/cpu_loan.hpp"
#include "tables/dominant_share.hpp"
#include "tables/light_load.hpp"
#include "tables/spare_list.hpp"
#include "tables/subject.hpp"

/// The records that the cluster is made of. They are found by their ids and do not move, so they
/// point at each other; what points at a record goes before it does. What is walked through has an
/// order that follows from the events alone (of ids, or of when a record was linked), never that of
/// a hash table: a replay makes the same effects.
namespace troupe::scheduler {

/// A place in a chain. A record that goes leaves the chains that it is in.
using Link =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
/// Records in the order in which they were linked, without an allocation for it.
template <class Record, Link Record::*kLink>
using Chain = boost::intrusive::list<Record, boost::intrusive::member_hook<Record, Link, kLink>,
                                     boost::intrusive::constant_time_size<false>>;

/// A place in an order by the first request.
using Turn = boost::intrusive::set_member_hook<>;

struct Job;
struct Node;
struct Process;
struct Shape;
struct JobLines;

enum class Kind : unsigned char { Lease, Actor, Gang };
constexpr std::size_t kKinds = 3;

/// Requests of one shape fit the same nodes: if the first does not fit now, none does.
struct ShapeKey {
  Kind kind = Kind::Lease;
  Need need;
  std::uint32_t size = 1;
  Strategy strategy = Strategy::Pack;

  Ask ask() const { return {need, size, strategy}; }
  friend bool operator==(const ShapeKey&, const ShapeKey&) = default;
};
/// One that requests and leases have in common. Counted without atomics: it stays with the thread
/// of its State.
struct SharedShape : boost::intrusive_ref_counter<SharedShape, boost::thread_unsafe_counter> {
  explicit SharedShape(ShapeKey of) : key{std::move(of)} {}
  const ShapeKey key;
};
class ShapePtr {
 public:
  ShapePtr() = default;
  explicit ShapePtr(ShapeKey key) : shared_{new SharedShape{std::move(key)}} {}
  explicit operator bool() const { return shared_ != nullptr; }
  const ShapeKey& operator*() const { return shared_->key; }
  const ShapeKey* operator->() const { return &shared_->key; }
  const ShapeKey* get() const { return &shared_->key; }

 private:
  boost::intrusive_ptr<const SharedShape> shared_;
};

/// A shape that is looked for, made of what lies elsewhere. Its need has its labels in order.
struct ShapeView {
  ShapeView(Kind k, const Need& n, std::uint32_t s, Strategy how)
      : kind{k}, need{n}, size{s}, strategy{how} {}
  ShapeView(const ShapeKey& key) : ShapeView{key.kind, key.need, key.size, key.strategy} {}

  Kind kind;
  const Need& need;
  std::uint32_t size;
  Strategy strategy;

  Ask ask() const { return {need, size, strategy}; }
};
struct ShapeHash {
  using is_transparent = void;
  std::size_t operator()(const ShapeView& shape) const {
    auto hash = hash_value(shape.need.resources);
    if (!shape.need.labels.empty()) boost::hash_combine(hash, shape.need.labels);
    boost::hash_combine(hash, shape.size);
    return hash;
  }
};
struct SameShape {
  using is_transparent = void;
  bool operator()(const ShapeView& a, const ShapeView& b) const {
    return a.kind == b.kind && a.size == b.size && a.strategy == b.strategy && a.need == b.need;
  }
};

struct Line;

struct Request {
  Link in_line;                ///< or among those of its requester that start
  std::uint64_t sequence = 0;  ///< order of arrival
  Line* line = nullptr;        ///< where it waits; nullptr: its processes are starting
  RequestId id{};
  TimePoint since{};
  Process* requester = nullptr;  ///< of its job
  ShapePtr shape;
  /// The actor or gang; the lease, once its process is chosen.
  SubjectId subject;
  std::unique_ptr<Reservation> reservation;  ///< few ever have one
  /// Asked while no node was there: how long it may be impossible.
  TimePoint patient_until = TimePoint::min();
  bool awaited = false;  ///< of a gang: whoever asks does nothing else meanwhile

  bool waiting() const { return line != nullptr; }
};

/// The waiting requests of one shape and one requester, by arrival.
struct Line {
  Shape* shape = nullptr;
  JobLines* of_job = nullptr;
  Process* requester = nullptr;
  Chain<Request, &Request::in_line> waiting;
  /// The sequence of the first one: compared often, and the requests lie elsewhere.
  std::uint64_t earliest = 0;
  Turn turn;
  Link of_requester;

  Request& first() { return waiting.front(); }
  const Request& first() const { return waiting.front(); }
};

struct Lease {
  LeaseId id{};
  Request* request = nullptr;  ///< while its process starts
  Process* requester = nullptr;
  Process* process = nullptr;
  Node* node = nullptr;  ///< of the process
  ShapePtr shape;
  bool recalled = false;  ///< this, the next and by_age are changed by LeaseAges alone
  TimePoint granted_at{};
  Link of_requester;
  Link by_age;

  bool granted() const { return request == nullptr; }
};

enum class Role : unsigned char { None, Lease, Actor, Rank };

/// What a process asked for, which shares its fate.
struct Dependents {
  Chain<Line, &Line::of_requester> lines;
  Chain<Request, &Request::in_line> starting;
  Chain<Lease, &Lease::of_requester> leases;
  std::set<ActorId> actors;
  std::set<GangId> gangs;

  /// One of the requests; nullptr if there is none.
  Request* any_request() {
    if (!lines.empty()) return &lines.front().first();
    return starting.empty() ? nullptr : &starting.front();
  }
  bool empty() const {
    return lines.empty() && starting.empty() && leases.empty() && actors.empty() && gangs.empty();
  }
};

struct Process {
  ProcessId id{};
  Job* job = nullptr;
  Node* node = nullptr;  ///< a driver has none
  SubjectId subject;     ///< the lease, actor or gang that uses it
  ProcessState state = ProcessState::Starting;
  Role role = Role::None;
  bool sees_gpus = false;    ///< then it is never used twice
  bool values_held = false;  ///< others have refs of what it owns
  bool light = false;        ///< its request asked for nothing; LightProcesses alone changes it
  Rank rank = 0;
  std::uint32_t threads = 1;  ///< of StartProcess
  CpuLoan loan;
  std::unique_ptr<Dependents> dependents;  ///< most worker processes never ask for anything
  Share held;
  TimePoint idle_since{};  ///< of a spare; this and the next are changed by Spares alone
  Link by_idleness;
  Link on_node;
  Link of_job;

  bool keeps_others() const { return dependents != nullptr && !dependents->empty(); }
  /// Its end, while it is idle, would be that of something that is in use.
  bool is_needed() const { return values_held || keeps_others(); }
  Dependents& asked() {
    if (dependents == nullptr) dependents = std::make_unique<Dependents>();
    return *dependents;
  }
};

struct Actor {
  ActorId id{};
  RequestId request{};  ///< while not placed
  JobId job{};
  ProcessId requester{};
  std::string name;
  std::string type;
  Stage stage = Stage::Pending;
  ProcessId process{};
};

struct Gang {
  GangId id{};
  RequestId request{};  ///< while not placed
  JobId job{};
  ProcessId requester{};
  std::uint32_t size = 0;
  Stage stage = Stage::Pending;
  std::vector<Member> members = {};  ///< no process where the rank has died
  std::size_t ready = 0;             ///< while starting
  std::size_t alive = 0;             ///< once placed
};

struct Job {
  JobId id{};
  ProcessId driver{};
  TimePoint started{};
  bool ended = false;
  bool at_command_line = false;  ///< its driver is told nothing about the C++ API
  DominantShare share;
  static constexpr std::uint32_t kMixed = ~std::uint32_t{0};
  /// Of each worker process that it has had, kMixed where these differ; 0: it has had none.
  std::uint32_t threads = 0;
  /// The CPUs that its actors and the ranks of its gangs hold, which no request gets back.
  Amount cpus_of_actors, cpus_of_gangs;
  std::size_t recallable = 0;  ///< its leases in the order of age; LeaseAges alone changes it
  /// By kind, when its driver was told last that such a request waits.
  std::array<std::optional<TimePoint>, kKinds> noticed = {};
  Chain<Process, &Process::of_job> processes;  ///< with the driver
};

struct Node {
  // What a lease that comes and goes looks at is in front: see kHotPart.
  NodeId id{};
  bool lost = false;     ///< being taken apart
  bool touched = false;  ///< and bookkeeping of the table: see there
  bool stale = false;
  std::size_t cpus = 1;             ///< whole ones when idle, at least one
  std::size_t lease_processes = 0;  ///< with a lease; LeaseBounds alone changes it
  std::size_t light_processes = 0;  ///< LightProcesses alone changes it
  Capacity free;
  SpareList spares;                             ///< processes that nobody uses
  CpuLines cpu_lines;                           ///< who gets the next CPU
  Claims claims;                                ///< what is kept here for whom
  static constexpr std::size_t kHotPart = 256;  ///< bytes up to here
  Capacity idle;
  Labels labels;          ///< all of them
  Labels lasting_labels;  ///< those that it may carry again after it has left
  std::string name;
  Incarnation incarnation{};
  Chain<Process, &Process::on_node> processes;  ///< by when they were made, so by their ids

  bool cpu_is_promised() const { return !cpu_lines.empty(); }
  LightLoad light_load() const { return {light_processes, cpus}; }
};

}  // namespace troupe::scheduler
