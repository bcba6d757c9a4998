#include "process/tasks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include <troupe/detail/call.hpp>

namespace troupe::process {
namespace {

std::string key_of(const detail::RequestOptions& options) {
  std::string key = options.spread ? "spread" : "pack";
  for (const auto& [name, units] : options.resources) key += fmt::format("\n{}={}", name, units);
  for (const auto& [name, value] : options.labels) key += fmt::format("\n{}:{}", name, value);
  return key;
}

}  // namespace

// ---- submitting ----------------------------------------------------------------------------------------------------

Tasks::Shape& Tasks::shape_of(const detail::RequestOptions& options) {
  const bool plain = &options == &detail::default_options();
  if (plain && default_shape_) return *default_shape_;
  auto [found, fresh] = shapes_.try_emplace(key_of(options));
  if (fresh) found->second.need = options;
  if (plain) default_shape_ = &found->second;
  return found->second;
}

void Tasks::submit(detail::CallSpec spec, const detail::RequestOptions& options, const detail::ObjectPtr& result) {
  auto task = std::make_shared<Task>();
  task->call.function = spec.function;
  task->result = result;
  task->tries_left = options.retries < 0 ? kDefaultRetries : options.retries;
  result->source.is_task = true;
  result->source.task = task;
  if (Resolver::is_here(spec.arguments)) {
    task->call.arguments = std::move(spec.arguments);
    OutChannelPtr through;
    std::uint64_t direct = 0;
    {
      const std::lock_guard lock(mutex_);
      task->shape = &shape_of(options);
      through = enqueue(task);
      direct = task->direct;
    }
    if (through) through->drain_now_and_then(direct);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    task->shape = &shape_of(options);
  }
  boost::asio::post(loop_, [this, task, arguments = std::move(spec.arguments)]() mutable {
    resolver_.resolve(std::move(arguments), [this, task](Resolver::Resolved resolved) {
      if (auto* failure = std::get_if<Failure>(&resolved)) return task->result->complete(*failure);
      task->call.arguments = std::move(std::get<0>(resolved));
      const std::lock_guard lock(mutex_);
      enqueue(task);
    });
  });
}

/// Under the mutex. -> the channel it went through, if it did.
OutChannelPtr Tasks::enqueue(const TaskPtr& task) {
  auto& shape = *task->shape;
  auto* lease = shape.queue.empty() ? with_room(shape) : nullptr;
  if (lease && lease->channel && send_directly(*lease, task)) {
    lease->line.push_back(task);
    return lease->channel;
  }
  shape.queue.push_back(task);
  dispatch(shape);
  if (!shape.queue.empty()) post_pump(shape);
  return nullptr;
}

void Tasks::post_pump(Shape& shape) {
  if (std::exchange(shape.pump_posted, true)) return;
  boost::asio::post(loop_, [this, &shape] {
    {
      const std::lock_guard lock(mutex_);
      shape.pump_posted = false;
    }
    pump(shape);
  });
}

// ---- under the mutex: from the queue into the lines of leases --------------------------------------------------------

std::size_t Tasks::longest_line(const Shape& shape, const Lease& lease) const {
  if (lease.recalled) return 0;
  if (lease.stuck || shape.run_time.count() < 0) return 1;
  return std::clamp<std::size_t>(
      static_cast<std::size_t>(kLine / std::max(shape.run_time, std::chrono::nanoseconds(1))), 1, kLongestLine);
}

Tasks::Lease* Tasks::with_room(Shape& shape) const {
  Lease* best = nullptr;
  for (auto& lease : shape.leases) {
    if (lease.line.size() >= longest_line(shape, lease)) continue;
    if (!best || lease.line.size() < best->line.size()) best = &lease;
  }
  return best;
}

/// What goes through channels; the rest is the loop's.
void Tasks::dispatch(Shape& shape) {
  while (!shape.queue.empty()) {
    auto* lease = with_room(shape);
    if (!lease || !lease->channel || !send_directly(*lease, shape.queue.front())) return;
    lease->line.push_back(shape.queue.take_front());
  }
}

bool Tasks::send_directly(Lease& lease, const TaskPtr& task) {
  DirectCall direct{
      .result = task->result, .receiver = this, .context = task, .lease = lease.id, .label = task->call.function.label};
  const auto id = lease.channel->send(Work::Kind::Task, task->call.function, task->call.arguments, direct);
  if (!id) return false;
  task->direct = *id;
  task->call.lease = lease.id;
  return true;
}

Tasks::Lease* Tasks::find(Shape& shape, std::uint64_t lease) const {
  auto found = std::ranges::find(shape.leases, lease, &Lease::id);
  return found == shape.leases.end() ? nullptr : &*found;
}

void Tasks::leave_line(Lease& lease, const Task* task) {
  auto place = std::ranges::find(lease.line, task, [](const TaskPtr& standing) { return standing.get(); });
  if (place == lease.line.begin()) lease.stuck = false;
  if (place != lease.line.end()) lease.line.erase(place);
  if (lease.line.empty()) lease.idle_since = Clock::now();
}

void Tasks::measured(Shape& shape, std::chrono::nanoseconds run_time) const {
  if (run_time.count() == 0) return;
  shape.run_time = shape.run_time.count() < 0 ? run_time : (7 * shape.run_time + run_time) / 8;
}

/// What stands in line behind the first one and has not started goes back to the head of the queue, in its order.
void Tasks::take_back(Shape& shape, Lease& lease) {
  if (!lease.channel) return ask_back(lease);
  while (lease.line.size() > 1) {
    auto& last = lease.line.back();
    if (last->direct == 0 || !lease.channel->revoke(last->direct)) return;
    last->direct = 0;
    shape.queue.push_front(std::move(last));
    lease.line.pop_back();
  }
}

/// Through a socket, what has not begun comes back as cancelled. The loop.
void Tasks::ask_back(Lease& lease) {
  for (std::size_t i = 1; i < lease.line.size(); ++i) {
    auto& task = *lease.line[i];
    auto cancel = task.taking_back ? nullptr : task.result->take_on_cancel();
    if (!cancel) continue;
    task.taking_back = true;
    cancel();
  }
}

std::size_t Tasks::leases_wanted(const Shape& shape) const {
  if (shape.queue.empty()) return 0;
  if (shape.run_time.count() < 0) return std::min(shape.queue.size(), kMaxAsks);
  auto tasks = shape.queue.size();
  for (const auto& lease : shape.leases) tasks += lease.line.size();
  const auto work = static_cast<std::size_t>((shape.run_time * static_cast<std::int64_t>(tasks) + kShare) / kShare);
  const auto whole = std::min(work, tasks);
  const auto more = whole > shape.leases.size() ? whole - shape.leases.size() : 0;
  return std::min({std::max<std::size_t>(more, shape.leases.empty() ? 1 : 0), shape.queue.size(), kMaxAsks});
}

void Tasks::drop(Shape& shape, std::list<Lease>::iterator lease) {
  shape.leases.erase(lease);
  channels_version_.fetch_add(1, std::memory_order_release);
}

std::vector<OutChannelPtr> Tasks::channels() {
  std::vector<OutChannelPtr> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, shape] : shapes_) {
    for (const auto& lease : shape.leases) {
      if (lease.channel) found.push_back(lease.channel);
    }
  }
  return found;
}

bool Tasks::has_leases() const {
  return std::ranges::any_of(shapes_, [](const auto& entry) { return !entry.second.leases.empty(); });
}

// ---- the loop: the socket's tasks, and the head ----------------------------------------------------------------------

void Tasks::pump(Shape& shape) {
  send_by_loop(shape);
  demand(shape);
}

/// To leases without a channel, and what no ring carries: that cannot be taken back, so it stands behind nothing.
void Tasks::send_by_loop(Shape& shape) {
  for (;;) {
    TaskPtr task;
    AddressPtr process;
    DirectCall direct;
    {
      const std::lock_guard lock(mutex_);
      dispatch(shape);
      auto* lease = shape.queue.empty() ? nullptr : with_room(shape);
      if (!lease || (lease->channel && !lease->line.empty())) return;
      task = shape.queue.take_front();
      task->direct = 0;
      task->call.lease = lease->id;
      task->call.attempt = task->deaths;
      lease->line.push_back(task);
      process = lease->process;
      direct = {.result = task->result,
                .receiver = this,
                .context = task,
                .lease = lease->id,
                .label = task->call.function.label};
    }
    calls_.send(process, task->call, std::move(direct));
  }
}

void Tasks::demand(Shape& shape) {
  std::size_t wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    wanted = leases_wanted(shape);
  }
  while (shape.asks.size() > wanted) {
    const auto id = shape.asks.back();
    shape.asks.pop_back();
    head_.withdraw(id);
  }
  while (shape.asks.size() < wanted) {
    const auto before = shape.asks.size();
    ask(shape);
    if (shape.asks.size() == before) return;  // the link is gone, and the queue with it
  }
}

bool Tasks::cancel(const detail::ObjectPtr& result) {
  const auto task = std::static_pointer_cast<Task>(result->source.task.lock());
  if (!task) return false;
  std::pair<OutChannelPtr, std::uint64_t> sent;
  bool queued = false;
  {
    const std::lock_guard lock(mutex_);
    queued = task->shape->queue.withdraw(*task);
    if (!queued && task->taking_back) {
      task->cancel_wanted = true;
      return true;
    }
    if (!queued && task->direct != 0) {
      if (auto* lease = find(*task->shape, task->call.lease)) sent = {lease->channel, task->direct};
    }
  }
  if (sent.first) sent.first->cancel(sent.second);
  if (!queued) return sent.first != nullptr;
  result->complete(Failure{.kind = Failure::Kind::Cancelled,
                           .message = fmt::format("{} was cancelled before it started", task->call.function.label)});
  pump(*task->shape);
  return true;
}

// ---- what becomes of them --------------------------------------------------------------------------------------------

void Tasks::answered(DirectCall call, Outcome outcome, std::chrono::nanoseconds run_time) {
  const auto task = std::static_pointer_cast<Task>(std::move(call.context));
  const auto* failure = std::get_if<Failure>(&outcome);
  bool came_back = false;
  {
    const std::lock_guard lock(mutex_);
    auto& shape = *task->shape;
    measured(shape, run_time);
    came_back = std::exchange(task->taking_back, false) && !task->cancel_wanted && failure &&
                failure->kind == Failure::Kind::Cancelled && run_time.count() == 0;
    auto* lease = find(shape, call.lease);
    if (lease) leave_line(*lease, task.get());
    if (came_back) shape.queue.push_front(task);
    dispatch(shape);
    if (!shape.queue.empty() || (lease && lease->recalled && lease->line.empty())) post_pump(shape);
  }
  if (!came_back) task->result->complete(std::move(outcome));
}

/// Of those that were sent through a socket, nobody says which had begun: the first one.
void Tasks::note_end(Lease& lease) {
  if (std::exchange(lease.ended, true) || lease.channel) return;
  for (std::size_t i = 1; i < lease.line.size(); ++i) lease.line[i]->behind_at_end = true;
}

/// Of those that stood in line, the first one ran; the others have done nothing.
void Tasks::lost(DirectCall call, bool started, const Failure& how) {
  const auto task = std::static_pointer_cast<Task>(std::move(call.context));
  auto& shape = *task->shape;
  {
    const std::lock_guard lock(mutex_);
    if (auto* lease = find(shape, call.lease)) {
      note_end(*lease);
      leave_line(*lease, task.get());
      lease->recalled = true;
    }
    if (std::exchange(task->behind_at_end, false)) started = false;
    task->taking_back = false;
    task->direct = 0;
    if (!started) shape.queue.push_front(task);
    post_pump(shape);
  }
  if (started) retry_or_fail(task, how);
}

void Tasks::retry_or_fail(const TaskPtr& task, Failure how) {
  ++task->deaths;
  if (task->tries_left-- > 0) {
    const std::lock_guard lock(mutex_);
    task->shape->queue.push_front(task);
    return post_pump(*task->shape);
  }
  if (task->deaths > 1) {
    how.message = fmt::format("{} ended {} processes, so it is not tried again; the last: {}",
                              task->call.function.label, task->deaths, how.message);
  }
  task->result->complete(std::move(how));
}

}  // namespace troupe::process
