#include "values/reservations.hpp"
#include "id_format.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace troupe::scheduler {
namespace {

Resources kept_for(const Request& request, std::size_t ranks) {
  return times(request.shape->need.resources, static_cast<std::int64_t>(ranks));
}

}  // namespace

Reservation& Reservations::reservation_of(Request& request) {
  if (request.reservation == nullptr) {
    request.reservation = std::make_unique<Reservation>();
    request.reservation->term_ = first_term_;
    by_arrival_.emplace(request.sequence, &request);
  }
  return *request.reservation;
}

void Reservations::hold(Request& request, const std::vector<Node*>& nodes, TimePoint now) {
  auto& reservation = reservation_of(request);
  assert(has_room() && !reservation.is_held() && !nodes.empty());
  for (auto* node : nodes) {
    auto& part = reservation.parts_[node->id];
    part.node = node;
    ++part.ranks;
  }
  for (const auto& [id, part] : reservation.parts_)
    part.node->claims.claims_.emplace(request.id,
                                      Claims::Claim{&request, kept_for(request, part.ranks)});
  reservation.until_ = now + reservation.term_;
  ++held_;
}

void Reservations::postpone(Request& request, TimePoint until) {
  auto& reservation = reservation_of(request);
  assert(!reservation.is_held());
  reservation.until_ = until;
}

std::vector<Node*> Reservations::lift(Request& request) {
  auto& reservation = *request.reservation;
  if (!reservation.is_held()) return {};
  std::vector<Node*> nodes;
  for (const auto& [id, part] : reservation.parts_) {
    part.node->claims.claims_.erase(request.id);
    nodes.push_back(part.node);
  }
  reservation.parts_.clear();
  --held_;
  return nodes;
}

std::vector<Node*> Reservations::lift_if_over(Request& request, TimePoint now) {
  auto& reservation = *request.reservation;
  if (!reservation.is_held() || reservation.until_ > now) return {};
  reservation.until_ = now + reservation.term_;
  reservation.term_ = std::min(2 * reservation.term_, longest_term_);
  return lift(request);
}

std::vector<Node*> Reservations::on_node_lost(const Node& node, TimePoint now) {
  std::vector<Node*> nodes;
  while (!node.claims.empty()) {
    auto& request = *node.claims.begin()->second.request;
    const auto lifted = lift(request);
    nodes.insert(nodes.end(), lifted.begin(), lifted.end());
    request.reservation->until_ = now;
  }
  return nodes;
}

std::vector<Node*> Reservations::end(Request& request) {
  assert(request.reservation != nullptr);
  auto nodes = lift(request);
  by_arrival_.erase(request.sequence);
  request.reservation.reset();
  return nodes;
}

std::vector<Request*> Reservations::requests() const {
  std::vector<Request*> requests;
  for (const auto& [sequence, request] : by_arrival_) requests.push_back(request);
  return requests;
}

std::vector<Node*> Reservations::nodes() const {
  std::vector<Node*> nodes;
  for (const auto& [sequence, request] : by_arrival_) {
    for (const auto& [id, part] : request->reservation->parts()) nodes.push_back(part.node);
  }
  return nodes;
}

std::optional<std::string> Reservations::broken_invariant(
    const std::vector<const Node*>& nodes) const {
  std::size_t held = 0;
  std::size_t parts = 0;
  for (const auto& [sequence, request] : by_arrival_) {
    if (request->sequence != sequence || request->reservation == nullptr)
      return fmt::format("request {}: it is listed and has no reservation", request->id);
    const auto& reservation = *request->reservation;
    for (const auto& [id, part] : reservation.parts()) {
      const auto* claim = part.node->claims.of(request->id);
      if (part.node->id != id || claim == nullptr || claim->request != request ||
          claim->resources != kept_for(*request, part.ranks))
        return fmt::format(
            "request {}: what is kept for it on node {} is no claim there, or another", request->id,
            id);
    }
    if (reservation.term_ > std::max(first_term_, longest_term_))
      return fmt::format("request {}: its reservation is held for too long", request->id);
    parts += reservation.parts().size();
    held += reservation.is_held() ? 1 : 0;
  }
  for (const auto* node : nodes) parts -= node->claims.size();
  if (parts != 0) return "nodes have other claims than the reservations say";
  if (held != held_ || held > most_) return "reservations are miscounted, or too many are held";
  return std::nullopt;
}

}  // namespace troupe::scheduler
