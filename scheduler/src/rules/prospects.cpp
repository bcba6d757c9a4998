#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"
#include "policies/labels.hpp"
#include "policies/place.hpp"

/// What the nodes could hold with nothing else on them: those that are there, and those that left
/// and may come back.
namespace troupe::scheduler {
namespace {

/// Counts the nodes together until they hold all processes of a shape.
class Tally {
 public:
  explicit Tally(const ShapeView& shape) : shape_{shape} {}

  /// -> true once the nodes so far hold all.
  bool add(const Capacity& idle, const Labels& labels) {
    if (!matches(labels, shape_.need.labels)) return is_enough();
    const auto slots = idle.slots(shape_.need.resources, shape_.size);
    if (shape_.strategy == Strategy::StrictPack) {
      if (slots >= shape_.size) found_ = shape_.size;
    } else {
      found_ += shape_.strategy == Strategy::StrictSpread ? std::min<std::size_t>(slots, 1) : slots;
    }
    return is_enough();
  }
  bool is_enough() const { return found_ >= shape_.size; }

 private:
  const ShapeView& shape_;
  std::size_t found_ = 0;
};

std::int64_t whole_seconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

}  // namespace

bool Cluster::possible(const ShapeView& shape) const {
  Tally tally{shape};
  count_present(shape, tally);
  return tally.is_enough();
}

template <class Counts>
void Cluster::count_present(const ShapeView& shape, Counts& counts) const {
  nodes_.by_total().descending(shape.need.resources, [&](NodeId id) {
    const auto& node = *nodes_.find(id);
    return node.lost || !counts.add(node.idle, node.labels);
  });
}

/// Of those that left, the latest first, the one with which the nodes could hold it; nullptr: not
/// even with all.
const DepartedNode* Cluster::missed_node(const ShapeView& shape) const {
  Tally tally{shape};
  count_present(shape, tally);
  for (const auto& departed : departed_.nodes()) {
    if (tally.add(departed.idle, departed.labels)) return &departed;
  }
  return nullptr;
}

Cluster::Prospect Cluster::prospect(const ShapeView& shape) const {
  if (fault(shape.need)) return {};
  if (possible(shape)) return {.possible = true};
  Prospect prospect;
  if (nodes_.empty()) prospect.until = now_ + options_.join_patience;
  if (const auto* missed = missed_node(shape)) {
    prospect.until = std::max(prospect.until, missed->left + options_.rejoin_patience);
  }
  return prospect;
}

/// After a node was lost: who can no longer be served waits for it to come back, or is refused.
void Cluster::judge_all_shapes() {
  for (auto* shape : queue_.shapes()) {
    const auto [is_possible, until] = prospect(*shape->key);
    shape->possible = is_possible;
    if (is_possible) continue;
    const auto because = until <= now_ ? impossible_because(*shape->key) : std::string{};
    for (auto* request : shape->everyone()) {
      request->patient_until = std::max(request->patient_until, until);
      if (request->patient_until <= now_) refuse(*request, Refused::Kind::Impossible, because);
    }
  }
}

std::string Cluster::impossible_because(const ShapeView& shape) const {
  if (nodes_.empty()) return "no node has joined yet";
  const auto judged = scheduler::place(shape.ask(), nodes_.candidates());
  const auto* impossible = std::get_if<Impossible>(&judged);
  return impossible != nullptr ? impossible->because : "the node that could hold it is being lost";
}

std::string Cluster::reason_of_missing(const ShapeView& shape) const {
  const auto* missed = missed_node(shape);
  if (missed == nullptr) {
    const auto because = impossible_because(shape);
    return nodes_.empty() ? because : fmt::format("waits for a node that can hold it: {}", because);
  }
  const auto sought =
      shape.size == 1 ? fmt::format("a node with {}", to_string(shape.need))
                      : fmt::format("room for {} ranks of {}", shape.size, to_string(shape.need));
  return fmt::format("waits for {}: '{}' (node {}), which had it, left {} s ago; waits until {} s",
                     sought, missed->name, missed->node, whole_seconds(now_ - missed->left),
                     whole_seconds(options_.rejoin_patience));
}

std::string Cluster::refusal_after_patience(const ShapeView& shape) const {
  const auto because = impossible_because(shape);
  const auto* missed = missed_node(shape);
  if (missed == nullptr) return because;
  return fmt::format("{}; '{}' (node {}) left {} s ago and has not come back", because,
                     missed->name, missed->node, whole_seconds(now_ - missed->left));
}

}  // namespace troupe::scheduler
