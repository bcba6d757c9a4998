#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "tables/model.hpp"
#include "tables/node_table.hpp"
#include "tables/queue.hpp"
#include "values/lease_bounds.hpp"
#include "values/light_processes.hpp"

namespace troupe::scheduler {

/// Whether a request may take what is kept for another one: invariant 2 of Shortlist.
bool goes_before(const Request& request, const Request& kept_for);

/// The nodes that a placement policy chooses from for one shape: few, whatever the size of the
/// cluster. Changes nothing besides itself; kept from one shape to the next for its memory.
///
/// 1. Each candidate admits a process of the shape: its labels match, it is not at its bound on
///    lease processes if that is for a lease, has room for a light process if that is one, no CPU
///    is promised there if the shape needs one, and the need fits what is free and kept for nobody
///    that goes before.
/// 2. What is kept for requests of the same shape, or of jobs that have had more, goes before
///    nobody. But what is kept for a job whose turn is overdue goes before all jobs that came after
///    the request, and what is kept for them not before the job.
/// 3. Where nodes admit a single process, one of them is a candidate, of those that a policy
///    prefers: the fullest, with Spread the emptiest, for a light process the one with the fewest
///    of them. For a gang there are as many candidates as could make a difference.
///
/// Candidates live until the next list is made, and until a node changes.
class Shortlist {
 public:
  Shortlist(const NodeTable& nodes, const LeaseBounds& bounds, const LightProcesses& light)
      : nodes_{nodes}, bounds_{bounds}, light_{light} {}
  Shortlist(const Shortlist&) = delete;

  /// Of all nodes. Cost: O(candidates + nodes passed over that have enough of the scarcest name).
  std::span<const Candidate> of_all(const Shape& shape);
  /// Of these alone. Cost: O(nodes).
  std::span<const Candidate> of(const std::vector<Node*>& nodes, const Shape& shape);
  /// Of the last list.
  Node& node_of(const Candidate& candidate) const {
    return *listed_[static_cast<std::size_t>(&candidate - candidates_.data())];
  }

  /// Whether a process of the shape may go there now. Ends the last list.
  bool admits(const Node& node, const Shape& shape) {
    if (!kept_apart_.empty()) clear();
    return admitted(node, shape) != nullptr;
  }

 private:
  void clear();
  void add(Node& node, const Capacity& free);
  /// What is free there for the shape, perhaps in `kept_apart_`; nullptr if none of it may go
  /// there, or none fits.
  const Capacity* admitted(const Node& node, const Shape& shape);
  const Capacity* left_by_claims(const Node& node, const Shape& shape);

  const NodeTable& nodes_;
  const LeaseBounds& bounds_;
  const LightProcesses& light_;
  std::vector<Candidate> candidates_;
  std::vector<Node*> listed_;  // the nodes of the same
  // What is left of nodes with claims, while candidates point at it.
  std::deque<Capacity> kept_apart_;
};

}  // namespace troupe::scheduler
