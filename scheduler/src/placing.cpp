#include <algorithm>

#include "cluster.hpp"
#include "policies/labels.hpp"
#include "policies/place.hpp"

namespace troupe::scheduler {
namespace {

// Nodes that fit a single process and are shown to the policy: the first ones in the order that the policy prefers.
constexpr std::size_t kShortlist = 8;

}  // namespace

void Cluster::place_waiting() {
  // Placing one that had nodes reserved gives the rest of them free, also to those that were passed over before.
  while (queue_.has_loose() || !nodes_.touched().empty()) {
    looked_at_ = nodes_.take_touched();
    std::uint64_t from = 0;
    while (auto* shape = queue_.first_from(from)) {
      from = shape->waiting.begin()->first + 1;
      const bool hopeless = !shape->possible || (shape->stuck && looked_at_.empty());
      if (hopeless || !try_place(requests_.at(shape->waiting.begin()->second), *shape)) queue_.set_stuck(*shape, true);
    }
  }
}

bool Cluster::try_place(Request& request, Shape& shape) {
  scratch_.clear();
  const auto key = request.shape;
  const auto candidates = shortlist(*key, shape.stuck);
  if (candidates.empty()) return false;
  const auto placement = scheduler::place(key->ask(), candidates);
  const auto* chosen = std::get_if<Chosen>(&placement);
  if (chosen == nullptr) return false;
  shape.bounded_since.reset();
  commit(request, chosen->nodes);
  return true;
}

std::vector<Candidate> Cluster::shortlist(const ShapeKey& shape, bool only_touched) const {
  const bool single = shape.size == 1;
  const bool on_one_node = shape.strategy == Strategy::StrictPack;
  if (only_touched) {
    auto touched = shortlist_of_touched(shape);
    if (single || touched.empty()) return touched;
  }
  // A node with room for one rank counts for at least one: as many such nodes as ranks are enough to choose from.
  const auto most = single || on_one_node ? kShortlist : shape.size;
  const auto slots = on_one_node ? std::size_t{shape.size} : std::size_t{1};
  std::vector<Candidate> found;
  const auto visit = [&](NodeId id) {
    const auto& node = *nodes_.find(id);
    if (const auto* free = admitted(node, shape);
        free != nullptr && free->slots(shape.need.resources, slots) >= slots) {
      found.push_back(NodeTable::candidate(node, *free));
    }
    return found.size() < most;
  };
  const bool fullest_first = on_one_node || (single && shape.strategy != Strategy::Spread);
  const auto& by_free = nodes_.by_free();
  if (fullest_first) {
    by_free.ascending(times(shape.need.resources, static_cast<std::int64_t>(slots)), visit);
  } else {
    by_free.descending(shape.need.resources, visit);
  }
  return found;
}

std::vector<Candidate> Cluster::shortlist_of_touched(const ShapeKey& shape) const {
  std::vector<Candidate> found;
  for (auto id : looked_at_) {
    const auto& node = *nodes_.find(id);
    if (const auto* free = admitted(node, shape); free != nullptr && free->fits(shape.need.resources)) {
      found.push_back(NodeTable::candidate(node, *free));
    }
  }
  return found;
}

const Capacity* Cluster::admitted(const Node& node, const ShapeKey& shape) const {
  const auto& need = shape.need.resources;
  if (!node.free.fits(need) || !matches(node.labels, shape.need.labels)) return nullptr;
  const bool cpu_is_promised = !node.resuming.empty() || !node.owing.empty();
  if (cpu_is_promised && !need.of(kCpu).is_zero()) return nullptr;
  if (shape.kind == Kind::Lease && at_lease_bound(node)) return nullptr;
  Resources claimed;
  for (const auto& [request, claim] : node.claims) {
    if (*claim.shape != shape) claimed += claim.resources;
  }
  if (!claimed.overlaps(need)) return &node.free;
  return &scratch_.emplace_back(node.free.without(claimed));
}

bool Cluster::at_lease_bound(const Node& node) const {
  const auto cpus = std::max<std::size_t>(1, static_cast<std::size_t>(node.idle.amounts().of(kCpu).units()));
  return node.lease_processes >= cpus * options_.lease_processes_per_cpu;
}

void Cluster::commit(Request& request, const std::vector<NodeId>& nodes) {
  queue_.remove(request);
  request.waiting = false;
  if (request.reservation) {
    lift(request);
    reserving_.erase({request.sequence, request.id});
    request.reservation.reset();
  }
  const auto kind = request.shape->kind;
  auto members = take_for(request, nodes);
  auto& first = processes_.at(members.front().process);
  if (kind == Kind::Lease) {
    request.subject = first.subject = ++last_lease_;
    leases_.emplace(last_lease_, Lease{last_lease_, request.id, request.requester, first.id, request.shape});
    processes_.at(request.requester).leases.insert(last_lease_);
  } else if (kind == Kind::Actor) {
    auto& actor = actors_.at(request.subject);
    actor.stage = Stage::Starting;
    actor.process = first.id;
  } else {
    auto& gang = gangs_.at(request.subject);
    gang.stage = Stage::Starting;
    gang.ready = 0;
    gang.members = members;
  }
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
    shares[rank] = nodes_.take(*nodes_.find(member.node), request.shape->need.resources);
    member.gpus = shares[rank].gpus;
    auto& seen = visible[member.node];
    std::ranges::copy_if(member.gpus, std::back_inserter(seen),
                         [&](auto gpu) { return std::ranges::count(seen, gpu) == 0; });
  }
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    auto& member = members[rank];
    auto& node = *nodes_.find(member.node);
    auto& process = process_for(request, node, std::move(shares[rank]), visible[member.node]);
    process.rank = static_cast<Rank>(rank);
    member.process = process.id;
  }
  return members;
}

Process& Cluster::process_for(const Request& request, Node& node, Share share, const std::vector<GpuIndex>& visible) {
  auto* process = visible.empty() ? spare_for(request.job, node) : nullptr;
  if (process == nullptr) {
    const auto id = new_process_id();
    process = &processes_[id];
    process->id = id;
    process->job = request.job;
    process->node = node.id;
    process->sees_gpus = !visible.empty();
    node.processes.insert(id);
    jobs_.at(request.job).processes.insert(id);
    emit(StartProcess{id, node.id, node.incarnation, request.job, visible});
  }
  process->held = std::move(share);
  process->subject = request.subject;
  switch (request.shape->kind) {
    case Kind::Lease:
      process->role = Role::Lease;
      ++node.lease_processes;
      break;
    case Kind::Actor:
      process->role = Role::Actor;
      break;
    case Kind::Gang:
      process->role = Role::Rank;
      break;
  }
  if (process->state == ProcessState::Idle) process->state = ProcessState::InUse;
  return *process;
}

Process* Cluster::spare_for(JobId job, Node& node) {
  const auto spares = node.spare.find(job);
  if (spares == node.spare.end()) return nullptr;
  const auto& ids = spares->second;
  const auto ready =
      std::find_if(ids.rbegin(), ids.rend(), [&](auto id) { return processes_.at(id).state == ProcessState::Idle; });
  auto& process = processes_.at(ready != ids.rend() ? *ready : ids.back());
  leave_spare(process);
  return &process;
}

void Cluster::back_to_waiting(Request& request) {
  const auto& subject = request.subject;
  if (request.shape->kind == Kind::Lease) {
    end_lease(subject, "its node was lost");
    request.subject = 0;
  } else if (request.shape->kind == Kind::Actor) {
    auto& actor = actors_.at(subject);
    clear_role(processes_.at(actor.process));
    put_aside(processes_.at(actor.process), "its node was lost");
    actor.stage = Stage::Pending;
    actor.process = 0;
  } else {
    auto& gang = gangs_.at(subject);
    const auto members = std::exchange(gang.members, {});
    gang.stage = Stage::Pending;
    for (const auto& member : members) clear_role(processes_.at(member.process));
    for (const auto& member : members) put_aside(processes_.at(member.process), "another node of its gang was lost");
  }
  request.waiting = true;
  queue_.add(request);
}

}  // namespace troupe::scheduler
