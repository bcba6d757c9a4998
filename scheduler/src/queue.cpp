#include "queue.hpp"

#include <cassert>
#include <iterator>
#include <utility>

namespace troupe::scheduler {

std::vector<Request*> Shape::everyone() {
  std::vector<Request*> all;
  all.reserve(size);
  for (auto& request : waiting) all.push_back(&request);
  return all;
}

Shape& Queue::shape_for(const ShapeView& wanted, ShapePtr known) {
  if (auto* shape = find(wanted)) return *shape;
  if (!known) {
    known = std::make_shared<const ShapeKey>(ShapeKey{wanted.kind, wanted.need, wanted.size, wanted.strategy});
  }
  auto& shape = shapes_[*known];
  shape.key = std::move(known);
  ++loose_;
  return shape;
}

void Queue::add(Request& request, Shape& shape) {
  const bool is_new = shape.waiting.empty();
  if (is_new || request.sequence < shape.first().sequence) {
    if (!is_new) by_first_.erase(shape.first().sequence);
    by_first_.emplace(request.sequence, &shape);
    // A request that comes back to the front may fit where the others behind it were never tried.
    set_stuck(shape, false);
  }
  insert(request, shape);
  request.line = &shape;
  ++shape.size;
  ++shape.requesters[request.requester->id];
}

/// At its place: at the end, or near the front where it was before.
void Queue::insert(Request& request, Shape& shape) {
  auto& waiting = shape.waiting;
  auto at = waiting.end();
  if (!waiting.empty() && request.sequence < waiting.back().sequence) {
    for (at = waiting.begin(); at->sequence < request.sequence;) ++at;
  }
  waiting.insert(at, request);
}

void Queue::remove(Request& request) {
  assert(request.line != nullptr);
  auto& shape = *std::exchange(request.line, nullptr);
  const auto whose = shape.requesters.find(request.requester->id);
  if (--whose->second == 0) shape.requesters.erase(whose);
  --shape.size;
  const bool was_first = &shape.first() == &request;
  request.in_line.unlink();
  if (!was_first) return;
  auto entry = by_first_.extract(request.sequence);
  if (!shape.waiting.empty()) {
    entry.key() = shape.first().sequence;
    entry.mapped() = &shape;
    by_first_.insert(std::move(entry));
    return;
  }
  if (!shape.stuck) --loose_;
  const auto key = shape.key;
  shapes_.erase(shapes_.find(*key));
}

Shape* Queue::find(const ShapeView& wanted) {
  const auto found = shapes_.find(wanted);
  return found == shapes_.end() ? nullptr : &found->second;
}

const Shape* Queue::find(const ShapeView& wanted) const {
  const auto found = shapes_.find(wanted);
  return found == shapes_.end() ? nullptr : &found->second;
}

Shape* Queue::first_from(std::uint64_t sequence) {
  const auto found = by_first_.lower_bound(sequence);
  return found == by_first_.end() ? nullptr : found->second;
}

std::vector<Shape*> Queue::shapes() {
  std::vector<Shape*> all;
  for (const auto& [first, shape] : by_first_) all.push_back(shape);
  return all;
}

void Queue::set_stuck(Shape& shape, bool stuck) {
  if (shape.stuck == stuck) return;
  shape.stuck = stuck;
  stuck ? --loose_ : ++loose_;
}

}  // namespace troupe::scheduler
