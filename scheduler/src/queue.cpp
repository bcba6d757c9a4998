#include "queue.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::scheduler {
namespace {

/// At its place: at the end, or near the front where it was before.
void insert(Request& request, Line& line) {
  auto& waiting = line.waiting;
  auto at = waiting.end();
  if (!waiting.empty() && request.sequence < waiting.back().sequence) {
    for (at = waiting.begin(); at->sequence < request.sequence;) ++at;
  }
  waiting.insert(at, request);
  request.line = &line;
}

struct FromSequence {
  bool operator()(const Shape& shape, std::uint64_t sequence) const { return shape.first().sequence < sequence; }
  bool operator()(std::uint64_t sequence, const Shape& shape) const { return sequence < shape.first().sequence; }
};

}  // namespace

Request* Shape::first_of(JobId job) {
  const auto line = lines.find(job);
  return line == lines.end() ? nullptr : &line->second.first();
}

std::vector<Request*> Shape::everyone() {
  std::vector<Request*> all;
  all.reserve(size);
  for (auto& line : order) {
    for (auto& request : line.waiting) all.push_back(&request);
  }
  std::ranges::sort(all, {}, &Request::sequence);
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
  auto& line = shape.lines[request.job];
  line.shape = &shape;
  line.job = request.job;
  const bool leads = shape.order.empty() || request.sequence < shape.first().sequence;
  if (leads && !shape.order.empty()) by_first_.erase(by_first_.iterator_to(shape));
  const bool leads_line = line.waiting.empty() || request.sequence < line.first().sequence;
  if (leads_line && !line.waiting.empty()) shape.order.erase(shape.order.iterator_to(line));

  insert(request, line);
  ++shape.size;
  ++shape.requesters[request.requester->id];
  if (leads_line) shape.order.insert(line);
  if (!leads) return;
  by_first_.insert(shape);
  // A request that comes back to the front may fit where the others behind it were never tried.
  set_stuck(shape, false);
}

void Queue::remove(Request& request) {
  assert(request.line != nullptr);
  auto& line = *std::exchange(request.line, nullptr);
  auto& shape = *line.shape;
  const bool led = &shape.first() == &request;
  const bool led_line = &line.first() == &request;
  if (led) by_first_.erase(by_first_.iterator_to(shape));
  if (led_line) shape.order.erase(shape.order.iterator_to(line));

  request.in_line.unlink();
  --shape.size;
  const auto whose = shape.requesters.find(request.requester->id);
  if (--whose->second == 0) shape.requesters.erase(whose);
  if (line.waiting.empty()) {
    shape.lines.erase(shape.lines.find(line.job));
  } else if (led_line) {
    shape.order.insert(line);
  }
  if (!led) return;
  if (shape.size > 0) {
    by_first_.insert(shape);
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
  const auto found = by_first_.lower_bound(sequence, FromSequence{});
  return found == by_first_.end() ? nullptr : &*found;
}

std::vector<Shape*> Queue::shapes() {
  std::vector<Shape*> all;
  for (auto& shape : by_first_) all.push_back(&shape);
  return all;
}

void Queue::set_stuck(Shape& shape, bool stuck) {
  if (shape.stuck == stuck) return;
  shape.stuck = stuck;
  stuck ? --loose_ : ++loose_;
}

}  // namespace troupe::scheduler
