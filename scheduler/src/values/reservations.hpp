#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/scheduler/options.hpp>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// Nodes kept for requests that have waited long, or whose turn it is. What holds the nodes may
/// itself wait for work that only they could do, so a reservation that does not fill is lifted for
/// as long as it was held, and is then held for twice as long. The Cluster decides which request
/// has nodes kept, and which nodes.
///
///   [none] --hold--> [held] --lift_if_over--> [pause] --hold--> [held: term doubled] ...
///      |                |                        ^
///      |                +-----on_node_lost-------+
///      +--postpone: no nodes were found----------+
///
///   end: from each state, as the request is placed or goes.
///
/// 1. A request has a reservation exactly where it is listed here, by its arrival.
/// 2. A node has a claim of a request exactly where the request's reservation names the node, and
///    the claim is as many times the need of the request as the reservation says.
/// 3. At most Options::reservations are held.
/// 4. The first term is Options::reservation_term; each one that is over doubles the next, to
///    Options::longest_reservation at most.
///
/// What returns nodes returns those on which less is kept than before, for others to be looked at.
/// Cost: O(nodes of the request), where nothing else is said.
class Reservations {
 public:
  explicit Reservations(const Options& options)
      : first_term_{options.reservation_term},
        longest_term_{options.longest_reservation},
        most_{options.reservations} {}

  bool has_room() const { return held_ < most_; }  ///< for one more that is held
  bool contains(const Request& request) const { return by_arrival_.contains(request.sequence); }
  std::size_t size() const { return by_arrival_.size(); }  ///< held ones and pauses
  static bool is_held(const Request& request) {
    return request.reservation != nullptr && request.reservation->is_held();
  }
  /// Whether the request holds nothing, and is in no pause.
  static bool may_hold(const Request& request, TimePoint now) {
    return request.reservation == nullptr ||
           (!request.reservation->is_held() && request.reservation->until() <= now);
  }

  /// Keeps room for one rank on each of the nodes; one that is named twice for two. Asserts
  /// has_room() and that the request holds nothing.
  void hold(Request& request, const std::vector<Node*>& nodes, TimePoint now);
  /// No nodes were found for the request: it may hold some from then on.
  void postpone(Request& request, TimePoint until);
  /// Ends the term of what the request holds, if it is over.
  std::vector<Node*> lift_if_over(Request& request, TimePoint now);
  /// Who has something kept on the node may hold other nodes at once.
  std::vector<Node*> on_node_lost(const Node& node, TimePoint now);
  /// Asserts that the request has a reservation, which is forgotten.
  std::vector<Node*> end(Request& request);

  std::vector<Request*> requests() const;  ///< by arrival; O(size())
  /// On which something is kept; one of several requests several times. O(claims).
  std::vector<Node*> nodes() const;

  /// `nodes`: all of them. Cost: O(nodes + claims).
  std::optional<std::string> broken_invariant(const std::vector<const Node*>& nodes) const;

 private:
  Reservation& reservation_of(Request& request);
  std::vector<Node*> lift(Request& request);

  Duration first_term_;
  Duration longest_term_;
  std::size_t most_;
  std::size_t held_ = 0;
  std::map<std::uint64_t, Request*> by_arrival_;
};

}  // namespace troupe::scheduler
