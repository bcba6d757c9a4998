#include "tables/queue.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "tables/records.hpp"

namespace troupe::scheduler {
namespace {

// Of a requester, before the shape is looked up: more than most have, and cheaper to compare than a
// look-up is.
constexpr auto kLinesTried = 4;

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
bool leads(const Order<Record>& order, const Record& record) {
  return &*order.begin() == &record;
}

/// To where its first request puts it: that has changed, or the record is new. Mostly it is there
/// already.
template <class Record, class Where>
void settle_at(Order<Record>& order, Record& record, Where earliest) {
  record.earliest = earliest;
  if (record.turn.is_linked()) {
    const auto at = order.iterator_to(record);
    const auto next = std::next(at);
    const bool before_next = next == order.end() || ByFirst{}(record, *next);
    if (before_next && (at == order.begin() || ByFirst{}(*std::prev(at), record))) return;
    order.erase(at);
  }
  order.insert(record);
}

struct FromPlace {
  bool operator()(const Shape& shape, Place place) const { return shape.earliest < place; }
  bool operator()(Place place, const Shape& shape) const { return place < shape.earliest; }
};

}  // namespace

Place JobLines::place_of(std::uint64_t sequence) const {
  return {is_overdue ? 0 : of->share.rank(), sequence};
}

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
  if (shape.key->need.resources.empty()) ++needless_;
  return shape;
}

Line* Queue::line_of(Process& requester, const ShapeView& wanted) {
  auto left = kLinesTried;
  for (auto& line : requester.asked().lines) {
    if (SameShape{}(*line.shape->key, wanted)) return &line;
    if (--left == 0) return nullptr;
  }
  return nullptr;
}

Line& Queue::line_for(const Request& request, Shape& shape) {
  auto [found, is_new] = shape.lines.try_emplace(request.requester->id);
  auto& line = found->second;
  if (!is_new) return line;
  line.shape = &shape;
  line.of_job = &shape.jobs[request.requester->job->id];
  line.of_job->job = request.requester->job->id;
  line.of_job->of = request.requester->job;
  line.requester = request.requester;
  request.requester->asked().lines.push_back(line);
  return line;
}

void Queue::add(Request& request, Shape& shape) { add(request, line_for(request, shape)); }

void Queue::add(Request& request, Line& line) {
  auto& shape = *line.shape;
  const bool leads_shape =
      shape.size == 0 || line.of_job->place_of(request.sequence) < shape.earliest;
  insert(request, line);
  ++shape.size;
  ++line.of_job->size;
  if (&line.first() == &request) settle_in(line);
  // A request that comes back to the front may fit where the others behind it were never tried.
  if (leads_shape) set_stuck(shape, false);
}

void Queue::remove(Request& request) {
  assert(request.line != nullptr);
  auto& line = *std::exchange(request.line, nullptr);
  const bool led = &line.first() == &request;
  request.in_line.unlink();
  --line.shape->size;
  --line.of_job->size;
  if (line.waiting.empty()) return leave(line);
  if (!led) return;
  settle_in(line);
  // With a million that wait its memory is cold, and it is the next of its line.
  const auto second = std::next(line.waiting.begin());
  if (second != line.waiting.end()) fetch(&*second);
}

bool Queue::serve(Request& request, TimePoint now) {
  auto& lines = *request.line->of_job;
  lines.served = now;
  const bool was_overdue = lines.is_overdue && set_overdue(lines, *request.line->shape, false);
  remove(request);
  return was_overdue;
}

bool Queue::set_overdue(JobLines& lines, Shape& shape, bool overdue) {
  if (std::exchange(lines.is_overdue, overdue) == overdue) return false;
  settle_in(lines, shape);
  return true;
}

void Queue::settle_in(Line& line) {
  auto& job = *line.of_job;
  auto& shape = *line.shape;
  const bool led_job = line.turn.is_linked() && leads(job.lines, line);
  settle_at(job.lines, line, line.first().sequence);
  if (led_job || leads(job.lines, line)) settle_in(job, shape);
}

void Queue::settle_in(JobLines& job, Shape& shape) {
  const bool led_shape = job.turn.is_linked() && leads(shape.order, job);
  settle_at(shape.order, job, job.place_of(job.lines.begin()->earliest));
  if (led_shape || leads(shape.order, job))
    settle_at(by_first_, shape, shape.order.begin()->earliest);
}

void Queue::leave(Line& line) {
  auto& shape = *line.shape;
  auto& job = *line.of_job;
  const bool led_job = leads(job.lines, line);
  job.lines.erase(job.lines.iterator_to(line));
  shape.lines.erase(shape.lines.find(line.requester->id));
  if (job.lines.empty()) return leave(job, shape);
  if (led_job) settle_in(job, shape);
}

void Queue::leave(JobLines& job, Shape& shape) {
  const bool led_shape = leads(shape.order, job);
  shape.order.erase(shape.order.iterator_to(job));
  shape.jobs.erase(shape.jobs.find(job.job));
  if (shape.jobs.empty()) return leave(shape);
  if (led_shape) settle_at(by_first_, shape, shape.order.begin()->earliest);
}

void Queue::leave(Shape& shape) {
  by_first_.erase(by_first_.iterator_to(shape));
  if (!shape.stuck) --loose_;
  if (shape.key->need.resources.empty()) --needless_;
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

Shape* Queue::first() { return by_first_.empty() ? nullptr : &*by_first_.begin(); }

Shape* Queue::next(Shape& shape) {
  const auto next = std::next(by_first_.iterator_to(shape));
  return next == by_first_.end() ? nullptr : &*next;
}

void Queue::settle(const Job& job) {
  for (auto& [key, shape] : shapes_) {
    const auto found = shape.jobs.find(job.id);
    if (found != shape.jobs.end()) settle_in(found->second, shape);
  }
}

Shape* Queue::first_from(Place place) {
  const auto found = by_first_.lower_bound(place, FromPlace{});
  return found == by_first_.end() ? nullptr : &*found;
}

std::vector<Shape*> Queue::shapes() {
  std::vector<Shape*> all;
  for (auto& shape : by_first_) all.push_back(&shape);
  return all;
}

}  // namespace troupe::scheduler
