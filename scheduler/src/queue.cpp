#include "queue.hpp"

#include <cassert>

namespace troupe::scheduler {

ShapePtr Queue::intern(ShapeKey key) {
  const auto found = shapes_.find(key);
  return found == shapes_.end() ? std::make_shared<const ShapeKey>(std::move(key)) : found->second.key;
}

Shape& Queue::add(const Request& request) {
  auto [at, is_new] = shapes_.try_emplace(*request.shape);
  auto& shape = at->second;
  if (is_new) {
    shape.key = request.shape;
    ++loose_;
  } else {
    by_first_.erase(shape.waiting.begin()->first);
    // A request that comes back to the front may fit where the others behind it were never tried.
    if (request.sequence < shape.waiting.begin()->first) set_stuck(shape, false);
  }
  shape.waiting.emplace(request.sequence, request.id);
  ++shape.requesters[request.requester];
  by_first_.emplace(shape.waiting.begin()->first, &shape);
  return shape;
}

void Queue::remove(const Request& request) {
  const auto at = shapes_.find(*request.shape);
  assert(at != shapes_.end());
  auto& shape = at->second;
  by_first_.erase(shape.waiting.begin()->first);
  shape.waiting.erase(request.sequence);
  if (--shape.requesters[request.requester] == 0) shape.requesters.erase(request.requester);
  if (!shape.waiting.empty()) {
    by_first_.emplace(shape.waiting.begin()->first, &shape);
    return;
  }
  if (!shape.stuck) --loose_;
  shapes_.erase(at);
}

const Shape* Queue::find(const ShapeKey& key) const {
  const auto found = shapes_.find(key);
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
