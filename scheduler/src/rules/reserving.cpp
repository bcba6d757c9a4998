#include <algorithm>
#include <deque>
#include <tuple>

#include "cluster.hpp"
#include "policies/labels.hpp"
#include "policies/place.hpp"

namespace troupe::scheduler {
namespace {

constexpr std::size_t kDrainShortlist = 8;

}  // namespace

/// The first of each shape that has waited longer than `patience`, or is owed what others have, has
/// nodes kept for it; others of its shape follow.
void Cluster::review_reservations(bool is_tick) {
  for (auto* request : reservations_.requests()) {
    nodes_.touch(reservations_.lift_if_over(*request, now_));
    if (Reservations::is_held(*request)) drain(*request);
  }
  for (auto* shape : queue_.shapes()) {
    if (!reservations_.has_room()) return;
    auto& request = shape->first();
    if (!shape->possible || !Reservations::may_hold(request, now_)) continue;
    if (has_waited_long(request) || (is_tick && is_owed(request))) reserve(request);
  }
}

/// For a gang that does not fit and is owed what others have, what becomes free is kept from now
/// on, lest small requests take it bit by bit. A lease or an actor, which takes what one lease
/// gives back, is looked at with the next tick.
void Cluster::hold_place(Request& request) {
  if (request.shape->kind != Kind::Gang || request.reservation || !is_owed(request)) return;
  if (reservations_.has_room()) reserve(request);
}

/// Who holds leases of that shape is served already, and would only get back what it has.
bool Cluster::has_waited_long(const Request& request) const {
  if (request.since + options_.patience > now_) return false;
  return std::ranges::none_of(request.requester->asked().leases,
                              [&](const Lease& lease) { return *lease.shape == *request.shape; });
}

void Cluster::reserve(Request& request) {
  auto found = plan(request, true);
  if (!found) found = plan(request, false);
  if (!found) return reservations_.postpone(request, now_ + options_.patience);
  std::vector<Node*> nodes;
  for (const auto id : *found) nodes.push_back(nodes_.find(id));
  reservations_.hold(request, nodes, now_);
  drain(request);
}

/// What is left of the node when leases have gone back, and with `around_actors` only those.
Capacity Cluster::room_in(const Node& node, const Request& request, bool around_actors) const {
  auto room = node.idle;
  if (around_actors) {
    for (const auto& process : node.processes) {
      if (process.role == Role::Actor || process.role == Role::Rank) room.take(process.held);
    }
  }
  const bool is_overdue = request.line->of_job->is_overdue;
  Resources claimed;
  for (const auto& [id, claim] : node.claims) {
    if (!is_overdue || !goes_before(request, *claim.request)) claimed += claim.resources;
  }
  return claimed.empty() ? room : room.without(claimed);
}

/// Where it could go once leases are returned; with `around_actors` leaving alone what actors and
/// gangs hold.
std::optional<std::vector<NodeId>> Cluster::plan(const Request& request, bool around_actors) const {
  const auto& need = request.shape->need;
  // For a single process a few nodes that could hold it are enough: what counts is that one is
  // drained, not which.
  const auto most = request.shape->size == 1 ? kDrainShortlist : nodes_.size();
  std::deque<Capacity> rooms;
  std::vector<Candidate> candidates;
  nodes_.by_total().ascending(need.resources, [&](NodeId id) {
    const auto& node = *nodes_.find(id);
    if (!matches(node.labels, need.labels)) return true;
    auto room = room_in(node, request, around_actors);
    if (!room.fits(need.resources)) return true;
    candidates.push_back(NodeTable::candidate(node, rooms.emplace_back(std::move(room))));
    return candidates.size() < most;
  });
  if (candidates.empty()) return std::nullopt;
  auto placement = scheduler::place(request.shape->ask(), candidates);
  if (auto* chosen = std::get_if<Chosen>(&placement)) return std::move(chosen->nodes);
  return std::nullopt;
}

/// What has waited for `patience` may have any lease recalled, and before that those of jobs that
/// have more.
bool Cluster::may_be_drained(const Lease& lease, const Request& request) const {
  if (lease.requester == request.requester && *lease.shape == *request.shape) return false;
  if (request.since + options_.patience <= now_) return true;
  const auto& shape = *request.shape;
  const auto all = times(shape.need.resources, shape.size);
  const auto step = shares_.step_of(request.requester->job->share, {}, all);
  return shares_.gives_way(lease.requester->job->share, lease.process->held.resources, step);
}

/// No more leases than are needed are recalled: of the jobs that have most, and of these the
/// oldest.
void Cluster::drain(const Request& request) {
  const auto& each = request.shape->need.resources;
  for (const auto& [id, part] : request.reservation->parts()) {
    auto& node = *part.node;
    const auto ranks = part.ranks;
    if (node.free.slots(each, ranks) >= ranks) continue;
    auto coming = node.free;
    std::vector<Process*> idle;
    std::vector<Lease*> leases;
    for (auto& process : node.processes) {
      if (process.state == ProcessState::Idle && process.job != request.requester->job &&
          !process.is_needed()) {
        idle.push_back(&process);
      }
      if (process.state == ProcessState::Stopping) coming.give(process.held);
      if (process.role != Role::Lease || !process.held.resources.overlaps(each)) continue;
      auto& lease = leases_.at(process.subject.lease());
      if (lease.recalled) {
        coming.give(process.held);
      } else if (lease.granted()) {
        leases.push_back(&lease);
      }
    }
    std::ranges::sort(leases, {}, [](const Lease* lease) {
      return std::tuple{-static_cast<std::int64_t>(lease->requester->job->share.rank()),
                        lease->granted_at, lease->id};
    });
    for (auto* lease : leases) {
      if (coming.slots(each, ranks) >= ranks) break;
      if (!may_be_drained(*lease, request)) continue;
      coming.give(lease->process->held);
      recall(*lease);
    }
    for (auto* process : idle)
      stop(*process, "its node is drained for a request whose turn is next");
  }
}

}  // namespace troupe::scheduler
