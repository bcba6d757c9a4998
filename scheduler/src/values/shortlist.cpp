#include "values/shortlist.hpp"

#include "policies/labels.hpp"

namespace troupe::scheduler {
namespace {

// Nodes that fit a single process and are shown to the policy: the first ones in the order that the
// policy prefers.
constexpr std::size_t kFew = 8;

bool is_light(const ShapeKey& shape) { return shape.size == 1 && shape.need.resources.empty(); }

bool is_overdue(const Request& request) {
  return request.line != nullptr && request.line->of_job->is_overdue;
}

/// Whether its job came after the other was asked for, and is to let the other go first.
bool lets_pass(const Request& request, const Request& other) {
  return is_overdue(other) && !is_overdue(request) && request.requester->job->started > other.since;
}

}  // namespace

bool goes_before(const Request& request, const Request& kept_for) {
  if (lets_pass(request, kept_for)) return false;
  return lets_pass(kept_for, request) ||
         kept_for.requester->job->share.has_had_more_than(request.requester->job->share);
}

void Shortlist::clear() {
  if (!kept_apart_.empty()) kept_apart_.clear();
  candidates_.clear();
  listed_.clear();
}

void Shortlist::add(Node& node, const Capacity& free) {
  candidates_.push_back(NodeTable::candidate(node, free));
  listed_.push_back(&node);
}

std::span<const Candidate> Shortlist::of(const std::vector<Node*>& nodes, const Shape& shape) {
  clear();
  for (auto* node : nodes) {
    if (const auto* free = admitted(*node, shape)) add(*node, *free);
  }
  return candidates_;
}

std::span<const Candidate> Shortlist::of_all(const Shape& waiting) {
  clear();
  const auto& shape = *waiting.key;
  const bool single = shape.size == 1;
  const bool on_one_node = shape.strategy == Strategy::StrictPack;
  // A node with room for one rank counts for at least one: as many such nodes as ranks are enough
  // to choose from.
  const auto most = single || on_one_node ? kFew : shape.size;
  const auto slots = on_one_node ? std::size_t{shape.size} : std::size_t{1};
  const auto visit = [&](NodeId id) {
    auto& node = *nodes_.find(id);
    const auto* free = admitted(node, waiting);
    const bool enough =
        free != nullptr && (slots == 1 || free->slots(shape.need.resources, slots) >= slots);
    if (enough) add(node, *free);
    return candidates_.size() < most;
  };
  if (is_light(shape)) {
    light_.fewest_first(visit);
    return candidates_;
  }
  const bool fullest_first = on_one_node || (single && shape.strategy != Strategy::Spread);
  const auto& by_free = nodes_.by_free();
  if (fullest_first) {
    by_free.ascending(times(shape.need.resources, static_cast<std::int64_t>(slots)), visit);
  } else {
    by_free.descending(shape.need.resources, visit);
  }
  return candidates_;
}

const Capacity* Shortlist::admitted(const Node& node, const Shape& shape) {
  const auto& need = shape.key->need.resources;
  if (!node.free.fits(need) || !matches(node.labels, shape.key->need.labels)) return nullptr;
  if (node.cpu_is_promised() && !need.of(kCpu).is_zero()) return nullptr;
  if (shape.key->kind == Kind::Lease && bounds_.is_at_bound(node)) return nullptr;
  if (is_light(*shape.key) && !light_.has_room(node)) return nullptr;
  return node.claims.empty() ? &node.free : left_by_claims(node, shape);
}

const Capacity* Shortlist::left_by_claims(const Node& node, const Shape& shape) {
  const auto& need = shape.key->need.resources;
  Resources claimed;
  for (const auto& [id, claim] : node.claims) {
    if (*claim.request->shape != *shape.key && !goes_before(shape.first(), *claim.request))
      claimed += claim.resources;
  }
  if (!claimed.overlaps(need)) return &node.free;
  const auto& left = kept_apart_.emplace_back(node.free.without(claimed));
  return left.fits(need) ? &left : nullptr;
}

}  // namespace troupe::scheduler
