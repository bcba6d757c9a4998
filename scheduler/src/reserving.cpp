#include <algorithm>

#include "cluster.hpp"
#include "policies/labels.hpp"
#include "policies/place.hpp"

namespace troupe::scheduler {
namespace {

constexpr std::size_t kDrainShortlist = 8;

}  // namespace

/// The first of each shape that has waited longer than `patience` has nodes kept for it; others of its shape follow.
void Cluster::review_reservations() {
  for (const auto& [sequence, id] : std::set{reserving_}) {
    auto& request = requests_.at(id);
    auto& reservation = *request.reservation;
    if (reservation.held() && reservation.until <= now_) {
      lift(request);
      reservation.until = now_ + reservation.term;
      reservation.term = std::min(2 * reservation.term, options_.longest_reservation);
    }
    if (reservation.held()) drain(request);
  }
  auto held = static_cast<std::size_t>(
      std::ranges::count_if(reserving_, [&](const auto& at) { return requests_.at(at.second).reservation->held(); }));
  for (auto* shape : queue_.shapes()) {
    if (held >= options_.reservations) return;
    auto& request = shape->first();
    if (!shape->possible || request.since + options_.patience > now_) continue;
    if (request.reservation && (request.reservation->held() || request.reservation->until > now_)) continue;
    if (reserve(request)) ++held;
  }
}

bool Cluster::reserve(Request& request) {
  if (!request.reservation) {
    request.reservation = std::make_unique<Reservation>(Reservation{{}, now_, options_.reservation_term});
    reserving_.emplace(request.sequence, request.id);
  }
  auto& reservation = *request.reservation;
  auto nodes = plan(request, true);
  if (!nodes) nodes = plan(request, false);
  if (!nodes) {
    reservation.until = now_ + options_.patience;
    return false;
  }
  for (auto node : *nodes) ++reservation.ranks[node];
  for (const auto& [id, ranks] : reservation.ranks) {
    nodes_.find(id)->claims.emplace(
        request.id, Claim{times(request.shape->need.resources, static_cast<std::int64_t>(ranks)), request.shape});
  }
  reservation.until = now_ + reservation.term;
  drain(request);
  return true;
}

/// What is left of the node when leases have gone back, and with `around_actors` only those.
Capacity Cluster::room_in(const Node& node, bool around_actors) const {
  auto room = node.idle;
  if (around_actors) {
    for (const auto& process : node.processes) {
      if (process.role == Role::Actor || process.role == Role::Rank) room.take(process.held);
    }
  }
  Resources claimed;
  for (const auto& [other, claim] : node.claims) claimed += claim.resources;
  return claimed.empty() ? room : room.without(claimed);
}

/// Where it could go once leases are returned; with `around_actors` leaving alone what actors and gangs hold.
std::optional<std::vector<NodeId>> Cluster::plan(const Request& request, bool around_actors) const {
  const auto& need = request.shape->need;
  // For a single process a few nodes that could hold it are enough: what counts is that one is drained, not which.
  const auto most = request.shape->size == 1 ? kDrainShortlist : nodes_.size();
  std::deque<Capacity> rooms;
  std::vector<Candidate> candidates;
  nodes_.by_total().ascending(need.resources, [&](NodeId id) {
    const auto& node = *nodes_.find(id);
    if (!matches(node.labels, need.labels)) return true;
    auto room = room_in(node, around_actors);
    if (!room.fits(need.resources)) return true;
    candidates.push_back(NodeTable::candidate(node, rooms.emplace_back(std::move(room))));
    return candidates.size() < most;
  });
  if (candidates.empty()) return std::nullopt;
  auto placement = scheduler::place(request.shape->ask(), candidates);
  if (auto* chosen = std::get_if<Chosen>(&placement)) return std::move(chosen->nodes);
  return std::nullopt;
}

void Cluster::lift(Request& request) {
  auto& reservation = *request.reservation;
  if (!reservation.held()) return;
  for (const auto& [id, ranks] : reservation.ranks) {
    if (auto* node = nodes_.find(id)) {
      node->claims.erase(request.id);
      nodes_.touch(*node);
    }
  }
  reservation.ranks.clear();
}

void Cluster::drain(const Request& request) {
  const auto& each = request.shape->need.resources;
  for (const auto& [id, ranks] : request.reservation->ranks) {
    auto& node = *nodes_.find(id);
    if (node.free.slots(each, ranks) >= ranks) continue;
    std::vector<Process*> idle;
    for (auto& process : node.processes) {
      if (process.state == ProcessState::Idle && process.job != request.requester->job && !process.is_needed()) {
        idle.push_back(&process);
      }
      if (process.role != Role::Lease || !process.held.resources.overlaps(each)) continue;
      auto& lease = leases_.at(process.subject);
      if (lease.requester != request.requester || *lease.shape != *request.shape) recall(lease);
    }
    for (auto* process : idle) stop(*process, "its node is drained for a request that has waited long");
  }
}

}  // namespace troupe::scheduler
