#include "queue.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "records.hpp"

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

template <class Record>
void relink(Order<Record>& order, Record& record) {
  if (record.turn.is_linked()) order.erase(order.iterator_to(record));
  order.insert(record);
}

struct FromSequence {
  bool operator()(const Shape& shape, std::uint64_t sequence) const { return shape.first().sequence < sequence; }
  bool operator()(std::uint64_t sequence, const Shape& shape) const { return sequence < shape.first().sequence; }
};

}  // namespace

Request* Shape::first_of(JobId job) {
  const auto found = jobs.find(job);
  return found == jobs.end() ? nullptr : &found->second.first();
}

std::vector<Request*> Shape::everyone() {
  std::vector<Request*> all;
  all.reserve(size);
  for (auto& [requester, line] : lines) {
    for (auto& request : line.waiting) all.push_back(&request);
  }
  std::ranges::sort(all, {}, &Request::sequence);
  return all;
}

Shape& Queue::shape_for(const ShapeView& wanted, ShapePtr known) {
  if (auto* shape = find(wanted)) return *shape;
  if (!known) {
    known = ShapePtr{ShapeKey{wanted.kind, wanted.need, wanted.size, wanted.strategy}};
  }
  auto& shape = shapes_[*known];
  shape.key = std::move(known);
  ++loose_;
  return shape;
}

Line& Queue::line_for(const Request& request, Shape& shape) {
  auto [found, is_new] = shape.lines.try_emplace(request.requester->id);
  auto& line = found->second;
  if (!is_new) return line;
  line.shape = &shape;
  line.of_job = &shape.jobs[request.job];
  line.of_job->job = request.job;
  line.requester = request.requester;
  request.requester->asked().lines.push_back(line);
  return line;
}

void Queue::add(Request& request, Shape& shape) {
  const bool leads = shape.size == 0 || request.sequence < shape.first().sequence;
  auto& line = line_for(request, shape);
  const bool leads_line = line.waiting.empty() || request.sequence < line.first().sequence;
  if (leads_line && !line.waiting.empty()) step_out(line);
  insert(request, line);
  ++shape.size;
  if (leads_line) step_in(line);
  // A request that comes back to the front may fit where the others behind it were never tried.
  if (leads) set_stuck(shape, false);
}

void Queue::remove(Request& request) {
  assert(request.line != nullptr);
  auto& line = *std::exchange(request.line, nullptr);
  const bool led = &line.first() == &request;
  if (led) step_out(line);
  request.in_line.unlink();
  --line.shape->size;
  if (line.waiting.empty()) return leave(line);
  if (!led) return;
  step_in(line);
  // With a million that wait its memory is cold, and it is the next of its line.
  const auto second = std::next(line.waiting.begin());
  if (second != line.waiting.end()) fetch(&*second);
}

void Queue::step_out(Line& line) {
  auto& job = *line.of_job;
  auto& shape = *line.shape;
  if (&job.first() == &line.first()) {
    if (&shape.first() == &line.first()) by_first_.erase(by_first_.iterator_to(shape));
    shape.order.erase(shape.order.iterator_to(job));
  }
  job.lines.erase(job.lines.iterator_to(line));
}

void Queue::step_in(Line& line) {
  auto& job = *line.of_job;
  auto& shape = *line.shape;
  job.lines.insert(line);
  if (&job.first() != &line.first() && job.turn.is_linked()) return;
  relink(shape.order, job);
  if (&shape.first() != &job.first() && shape.turn.is_linked()) return;
  relink(by_first_, shape);
}

/// One that is empty, and out of the orders.
void Queue::leave(Line& line) {
  auto& shape = *line.shape;
  auto& job = *line.of_job;
  shape.lines.erase(shape.lines.find(line.requester->id));
  if (job.lines.empty()) {
    shape.jobs.erase(shape.jobs.find(job.job));
  } else if (!job.turn.is_linked()) {
    shape.order.insert(job);
  }
  if (shape.size > 0) {
    if (!shape.turn.is_linked()) by_first_.insert(shape);
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
