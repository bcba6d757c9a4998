#include <algorithm>

#include "cluster.hpp"
#include "policies/place.hpp"
#include "policies/single.hpp"

namespace troupe::scheduler {
namespace {

constexpr std::int64_t kMostThreads = 65'536;

/// That libraries may use in a process with that need.
std::uint32_t threads_for(const Need& need) {
  const auto whole = need.resources.cpu() / Amount::whole(1);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(whole, 1, kMostThreads));
}

/// Without a look at the process where its job says it.
bool has_threads(const Spare& spare, const Job& job, std::uint32_t threads) {
  return job.threads == Job::kMixed ? spare.process->threads == threads : job.threads == threads;
}

}  // namespace

void Cluster::place_waiting() {
  nodes_.take_touched(looked_at_);
  for (auto* shape = queue_.first(); shape != nullptr;) {
    const auto from = shape->earliest;
    if (shape->possible && try_place(*shape)) {
      shape = may_place() ? queue_.first_from(from) : nullptr;
    } else {
      if (shape->possible) hold_place(shape->first());
      queue_.set_stuck(*shape, true);
      shape = queue_.next(*shape);
    }
  }
}

/// False where all that wait have been tried since, and the nodes that were touched are full. So,
/// mostly, it ends: of many shapes, those behind the ones that fill the node are not looked at.
bool Cluster::may_place() const {
  if (queue_.has_loose() || queue_.has_needless()) return true;
  return std::ranges::any_of(looked_at_,
                             [](const Node* node) { return !node->free.amounts().empty(); });
}

bool Cluster::try_place(Shape& shape) {
  if (shape.key->kind == Kind::Gang) return try_place_gang(shape);
  auto* home = home_for(shape);
  if (home == nullptr) return false;
  shape.bounded_since.reset();
  commit(next_for(*home, shape), *home);
  return true;
}

Node* Cluster::home_for(const Shape& shape) {
  // Mostly one lease has been returned, and with one node there is nothing to choose.
  if (shape.stuck && looked_at_.size() == 1)
    return shortlist_.admits(*looked_at_[0], shape) ? looked_at_[0] : nullptr;
  const auto candidates = shortlist(shape);
  if (candidates.empty()) return nullptr;
  const auto* home = place_single(shape.key->ask(), candidates);
  return home == nullptr ? nullptr : &shortlist_.node_of(*home);
}

bool Cluster::try_place_gang(Shape& shape) {
  const auto candidates = shortlist(shape);
  if (candidates.empty()) return false;
  const auto placement = scheduler::place(shape.key->ask(), candidates);
  const auto* chosen = std::get_if<Chosen>(&placement);
  if (chosen == nullptr) return false;
  shape.bounded_since.reset();
  commit(shape.first(), chosen->nodes);
  return true;
}

/// The first; or of those that came together with it, the first one that an idle process on the
/// node can serve.
Request& Cluster::next_for(const Node& node, Shape& shape) {
  auto& first = shape.first();
  const bool warm = shape.key->kind == Kind::Lease && shape.key->need.resources.of(kGpu).is_zero();
  if (!warm || first.reservation) return first;
  Request* best = nullptr;
  const Process* idle = nullptr;
  const auto threads = threads_for(shape.key->need);
  for (const auto& spare : node.spares) {
    auto* request = shape.first_of(spare.job);
    if (request == nullptr || (best != nullptr && request->sequence > best->sequence)) continue;
    const auto& job = *request->requester->job;
    if (!has_threads(spare, job, threads)) continue;
    if (job.share.has_had_more_than(first.requester->job->share)) continue;
    best = request;
    idle = spare.process;
  }
  if (best == nullptr || best->since > first.since + options_.together) return first;
  fetch(idle);
  return *best;
}

std::span<const Candidate> Cluster::shortlist(const Shape& shape) {
  if (!shape.stuck) return shortlist_.of_all(shape);
  const auto touched = shortlist_.of(looked_at_, shape);
  // A gang may fit with what the other nodes have.
  return shape.key->size == 1 || touched.empty() ? touched : shortlist_.of_all(shape);
}

void Cluster::leave_queue(Request& request) {
  requests_.fetch_place(request);
  // What is kept for its job's others is not kept from later jobs any more.
  if (queue_.serve(request, now_)) nodes_.touch(reservations_.nodes());
  request.requester->asked().starting.push_back(request);
  if (request.reservation) nodes_.touch(reservations_.end(request));
}

/// What is taken in spite of a claim may be a part of a GPU that was kept whole, of which the rest
/// is free for others now.
Share Cluster::take(Node& node, const Resources& need) {
  if (!node.claims.empty()) nodes_.touch(node);
  return nodes_.take(node, need);
}

/// A lease or an actor.
void Cluster::commit(Request& request, Node& node) {
  leave_queue(request);
  auto share = take(node, request.shape->need.resources);
  auto& process = process_for(request, node, share, share.gpus);
  process.rank = 0;
  if (request.shape->kind == Kind::Lease) return lease(request, process);
  auto& actor = actors_.at(request.subject.actor());
  actor.stage = Stage::Starting;
  actor.process = process.id;
  became_ready(process);
}

void Cluster::lease(Request& request, Process& process) {
  request.subject = process.subject = SubjectId{++last_lease_};
  auto& lease = leases_.make(last_lease_);
  lease.request = &request;
  lease.requester = request.requester;
  lease.process = &process;
  lease.node = process.node;
  lease.shape = request.shape;
  request.requester->asked().leases.push_back(lease);
  if (process.state == ProcessState::InUse) grant(lease);
}

/// A gang.
void Cluster::commit(Request& request, const std::vector<NodeId>& nodes) {
  leave_queue(request);
  const auto members = take_for(request, nodes);
  auto& gang = gangs_.at(request.subject.gang());
  gang.stage = Stage::Starting;
  gang.ready = 0;
  gang.members = members;
  for (const auto& member : members) became_ready(processes_.at(member.process));
}

std::vector<Member> Cluster::take_for(Request& request, const std::vector<NodeId>& nodes) {
  std::vector<Member> members(nodes.size());
  std::vector<Share> shares(nodes.size());
  std::map<NodeId, std::vector<GpuIndex>> visible;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    auto& member = members[rank];
    const bool same_node = rank > 0 && nodes[rank - 1] == nodes[rank];
    member.node = nodes[rank];
    member.local_rank = same_node ? members[rank - 1].local_rank + 1 : 0;
    member.node_rank = rank == 0 ? 0 : members[rank - 1].node_rank + (same_node ? 0 : 1);
    shares[rank] = take(*nodes_.find(member.node), request.shape->need.resources);
    member.gpus = shares[rank].gpus;
    auto& seen = visible[member.node];
    std::ranges::copy_if(member.gpus, std::back_inserter(seen),
                         [&](auto gpu) { return std::ranges::count(seen, gpu) == 0; });
  }
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    auto& member = members[rank];
    auto& node = *nodes_.find(member.node);
    auto& process = process_for(request, node, shares[rank], visible[member.node]);
    process.rank = static_cast<Rank>(rank);
    member.process = process.id;
  }
  return members;
}

Process& Cluster::process_for(const Request& request, Node& node, Share& share,
                              const std::vector<GpuIndex>& visible) {
  auto& job = *request.requester->job;
  const auto threads = threads_for(request.shape->need);
  auto* process = visible.empty() ? spares_.take(job, node, threads) : nullptr;
  if (process == nullptr) process = &new_process(job, node, visible, threads);
  process->held = std::move(share);
  process->subject = request.subject;
  switch (request.shape->kind) {
    case Kind::Lease:
      process->role = Role::Lease;
      bounds_.add(node);
      break;
    case Kind::Actor:
      process->role = Role::Actor;
      break;
    case Kind::Gang:
      process->role = Role::Rank;
      break;
  }
  count_use(*process, true);
  if (request.shape->need.resources.empty()) light_.add(*process);
  if (process->state == ProcessState::Idle) process->state = ProcessState::InUse;
  return *process;
}

Process& Cluster::new_process(Job& job, Node& node, const std::vector<GpuIndex>& visible,
                              std::uint32_t threads) {
  const auto id = new_process_id();
  auto& process = processes_.make(id);
  process.job = &job;
  process.node = &node;
  process.sees_gpus = !visible.empty();
  process.threads = threads;
  job.threads = job.threads == 0 || job.threads == threads ? threads : Job::kMixed;
  node.processes.push_back(process);
  job.processes.push_back(process);
  emit(StartProcess{id, node.id, node.incarnation, job.id, visible, threads});
  return process;
}

void Cluster::back_to_waiting(Request& request) {
  const auto& subject = request.subject;
  if (request.shape->kind == Kind::Lease) {
    end_lease(leases_.at(subject.lease()), "its node was lost");
    request.subject = {};
  } else if (request.shape->kind == Kind::Actor) {
    auto& actor = actors_.at(subject.actor());
    clear_role(processes_.at(actor.process));
    put_aside(processes_.at(actor.process), "its node was lost");
    actor.stage = Stage::Pending;
    actor.process = {};
  } else {
    auto& gang = gangs_.at(subject.gang());
    const auto members = std::exchange(gang.members, {});
    gang.stage = Stage::Pending;
    for (const auto& member : members) clear_role(processes_.at(member.process));
    for (const auto& member : members)
      put_aside(processes_.at(member.process), "another node of its gang was lost");
  }
  request.in_line.unlink();
  queue_.add(request, queue_.shape_for(*request.shape, request.shape));
}

}  // namespace troupe::scheduler
