#include "tasks/lease_book.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include <troupe/detail/call.hpp>

/// Who waits for which lease, what runs again after a death and how often, what is cancelled and
/// what fails.
namespace troupe::tasks {
namespace {

using Stage = BookedTask::Stage;

std::string key_of(const detail::RequestOptions& options) {
  std::string key = options.spread ? "spread" : "pack";
  for (const auto& [name, units] : options.resources) key += fmt::format("\n{}={}", name, units);
  for (const auto& [name, value] : options.labels) key += fmt::format("\n{}:{}", name, value);
  return key;
}

Failure cancelled(const BookedTask& task) {
  return {.kind = Failure::Kind::Cancelled,
          .message = fmt::format("{} was cancelled before it started", task.label)};
}

}  // namespace

/// Tasks and leases of one need.
struct Shape {
  std::string key;
  detail::RequestOptions need;
  WithdrawingQueue<BookedTask> queue;  // of those that wait for a lease
  std::vector<Lease*> leases;
  std::vector<AskId> asks;
  std::size_t tasks = 0;                  // that are not over
  std::chrono::nanoseconds run_time{-1};  // of its tasks, a moving average; below 0: not known
  bool changed = false;
  int failed_starts = 0;  // one after the other
  std::optional<TimePoint> pause_until;
  std::optional<std::list<Shape*>::iterator> idle;

  std::size_t longest_line(const Lease& lease) const;
  Lease* with_room() const;
  std::size_t leases_wanted() const;
  void measured(std::chrono::nanoseconds time);
};

// ---- shapes -------------------------------------------------------------------------------------

std::size_t Shape::longest_line(const Lease& lease) const {
  if (lease.recalled) return 0;
  if (lease.stuck || run_time.count() < 0 ||
      (!lease.line.empty() && lease.line.front()->stands_alone()))
    return 1;
  return std::clamp<std::size_t>(
      static_cast<std::size_t>(LeaseBook::kLine / std::max(run_time, std::chrono::nanoseconds(1))),
      1, LeaseBook::kLongestLine);
}

Lease* Shape::with_room() const {
  Lease* best = nullptr;
  for (auto* lease : leases) {
    if (lease->line.size() >= longest_line(*lease)) continue;
    if (!best || lease->line.size() < best->line.size()) best = lease;
  }
  return best;
}

std::size_t Shape::leases_wanted() const {
  if (queue.empty()) return 0;
  if (run_time.count() < 0) return std::min(queue.size(), LeaseBook::kMostAsks);
  auto waiting = queue.size();
  for (const auto* lease : leases) waiting += lease->line.size();
  const auto work = static_cast<std::size_t>(
      (run_time * static_cast<std::int64_t>(waiting) + LeaseBook::kShare) / LeaseBook::kShare);
  const auto whole = std::min(work, waiting);
  const auto more = whole > leases.size() ? whole - leases.size() : 0;
  return std::min(
      {std::max<std::size_t>(more, leases.empty() ? 1 : 0), queue.size(), LeaseBook::kMostAsks});
}

void Shape::measured(std::chrono::nanoseconds time) {
  if (time.count() == 0) return;
  run_time = run_time.count() < 0 ? time : (7 * run_time + time) / 8;
}

LeaseBook::LeaseBook() = default;
LeaseBook::~LeaseBook() = default;

Shape& LeaseBook::shape_of(const detail::RequestOptions& need) {
  const bool plain = &need == &detail::default_task_options();
  if (plain && default_shape_) return *default_shape_;
  auto key = key_of(need);
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    found = shapes_.emplace(key, std::make_unique<Shape>()).first;
    found->second->key = std::move(key);
    found->second->need = need;
  }
  auto& shape = *found->second;
  if (plain) default_shape_ = &shape;
  if (shape.idle) idle_.erase(*std::exchange(shape.idle, std::nullopt));
  return shape;
}

void LeaseBook::changed(Shape& shape) {
  if (!std::exchange(shape.changed, true)) changed_.push_back(&shape);
}

/// A shape that nothing is left of waits to be used again, or to be forgotten.
void LeaseBook::rest(Shape& shape) {
  if (&shape == default_shape_ || shape.idle || shape.changed) return;
  if (shape.tasks != 0 || !shape.leases.empty() || !shape.asks.empty() || shape.pause_until) return;
  shape.idle = idle_.insert(idle_.end(), &shape);
  if (idle_.size() <= kIdleShapes) return;
  auto* oldest = idle_.front();
  idle_.pop_front();
  shapes_.erase(std::string(oldest->key));
}

// ---- tasks --------------------------------------------------------------------------------------

void LeaseBook::submit(TaskPtr task, const detail::RequestOptions& need, bool arguments_are_here,
                       Effects& effects) {
  task->shape = &shape_of(need);
  ++task->shape->tasks;
  if (arguments_are_here) enqueue(std::move(task), effects);
}

void LeaseBook::arguments_here(const TaskPtr& task, Effects& effects) {
  if (task->stage == Stage::AwaitsArguments) enqueue(task, effects);
}

void LeaseBook::arguments_failed(const TaskPtr& task, const Failure& how, Effects& effects) {
  if (task->stage == Stage::AwaitsArguments) fail(*task, how, effects);
}

/// At once where there is a channel with room in its line, which needs no turn.
void LeaseBook::enqueue(TaskPtr task, Effects& effects) {
  auto& shape = *task->shape;
  if (shape.queue.empty() && task->fits_channel) {
    auto* lease = shape.with_room();
    if (lease && lease->has_channel) return send(*lease, std::move(task), effects);
  }
  task->stage = Stage::Queued;
  shape.queue.push_back(std::move(task));
  dispatch(shape, false, effects);
  if (!shape.queue.empty()) changed(shape);
}

void LeaseBook::send(Lease& lease, TaskPtr task, Effects& effects) {
  assert(!lease.recalled && !lease.lost);
  task->stage = Stage::Sent;
  task->lease = &lease;
  task->by_channel = lease.has_channel && task->fits_channel;
  task->taking_back = false;
  lease.idle_since.reset();
  effects.emplace_back(Send{task.get()});
  lease.line.push_back(std::move(task));
}

/// What no channel carries stands behind nothing where there is one: it could not be taken back at
/// once.
void LeaseBook::dispatch(Shape& shape, bool through_sockets, Effects& effects) {
  while (!shape.queue.empty()) {
    auto* lease = shape.with_room();
    if (!lease) return;
    if (shape.queue.front()->stands_alone() && !lease->line.empty()) return;
    const bool by_channel = lease->has_channel && shape.queue.front()->fits_channel;
    if (!by_channel && (!through_sockets || (lease->has_channel && !lease->line.empty()))) return;
    send(*lease, shape.queue.take_front(), effects);
  }
}

TaskPtr LeaseBook::leave_line(BookedTask& task) {
  auto& lease = *std::exchange(task.lease, nullptr);
  const auto place =
      std::ranges::find(lease.line, &task, [](const TaskPtr& standing) { return standing.get(); });
  assert(place != lease.line.end());
  if (place == lease.line.begin()) lease.stuck = false;
  auto kept = std::move(*place);
  lease.line.erase(place);
  if (lease.line.empty() && lease.recalled) changed(*lease.shape);
  return kept;
}

bool LeaseBook::answered(BookedTask& task, std::chrono::nanoseconds run_time, Effects& effects) {
  if (task.stage != Stage::Sent) return false;
  auto& shape = *task.shape;
  shape.measured(run_time);
  const auto kept = leave_line(task);
  over(task);
  dispatch(shape, false, effects);
  if (!shape.queue.empty()) changed(shape);
  return true;
}

void LeaseBook::over(BookedTask& task) {
  task.stage = Stage::Over;
  auto& shape = *std::exchange(task.shape, nullptr);
  // Whether it rests is for the next turn to see, and for no task to pay.
  if (--shape.tasks == 0 && &shape != default_shape_) changed(shape);
}

void LeaseBook::fail(BookedTask& task, Failure how, Effects& effects) {
  auto kept = task.shared_from_this();
  over(task);
  effects.emplace_back(Fail{std::move(kept), std::move(how)});
}

void LeaseBook::requeue(BookedTask& task) {
  task.stage = Stage::Queued;
  task.taking_back = false;
  auto& shape = *task.shape;
  shape.queue.push_front(task.shared_from_this());
  changed(shape);
}

void LeaseBook::cancel(const TaskPtr& task, Effects& effects) {
  if (task->stage == Stage::Over || std::exchange(task->cancel_wanted, true)) return;
  if (task->stage == Stage::Sent) {
    if (!std::exchange(task->taking_back, true)) effects.emplace_back(TakeBack{task});
    return;
  }
  auto& shape = *task->shape;
  if (task->stage == Stage::Queued) shape.queue.withdraw(*task);
  fail(*task, cancelled(*task), effects);
  changed(shape);
}

void LeaseBook::taken_back(BookedTask& task, Effects& effects) {
  if (task.stage != Stage::Sent) return;
  auto& shape = *task.shape;
  const auto kept = leave_line(task);
  if (task.cancel_wanted) {
    fail(task, cancelled(task), effects);
  } else {
    requeue(task);
  }
  dispatch(shape, false, effects);
}

void LeaseBook::runs_on(BookedTask& task) { task.taking_back = false; }

void LeaseBook::lost(BookedTask& task, Progress progress, const Failure& how, Effects& effects) {
  if (task.stage != Stage::Sent) return;
  task.lease->recalled = true;
  const auto kept = leave_line(task);
  if (progress != Progress::NotBegun) ++task.deaths;
  if (task.cancel_wanted) return fail(task, cancelled(task), effects);
  if (progress == Progress::NotBegun) return requeue(task);
  if (task.tries_left > 0) {
    --task.tries_left;
    return requeue(task);
  }
  auto failure = how;
  failure.message =
      task.deaths > 1 ? fmt::format("{} ended {} processes, so it is not tried again; the last: {}",
                                    task.label, task.deaths, how.message)
                      : fmt::format("{} has no try left: {}", task.label, how.message);
  if (progress == Progress::Finished) {
    failure.message +=
        fmt::format(" ({} had returned there, and its result went with the process)", task.label);
  } else if (progress == Progress::Unknown) {
    failure.message += fmt::format(
        " (nobody can say whether {} had begun there, so it is not run again without a try left: "
        "see Options::retries)",
        task.label);
  }
  fail(task, std::move(failure), effects);
}

// ---- leases -------------------------------------------------------------------------------------

bool LeaseBook::granted(AskId ask, LeasePtr lease) {
  const auto asked = asks_.extract(ask);
  if (asked.empty()) return false;
  auto& shape = *asked.mapped();
  std::erase(shape.asks, ask);
  end_pause(shape);
  lease->shape = &shape;
  shape.leases.push_back(lease.get());
  leases_.emplace(lease->id, std::move(lease));
  changed(shape);
  return true;
}

void LeaseBook::refused(AskId ask, Refusal refusal, const Failure& why, TimePoint now,
                        Effects& effects) {
  const auto asked = asks_.extract(ask);
  if (asked.empty()) return;
  auto& shape = *asked.mapped();
  std::erase(shape.asks, ask);
  changed(shape);
  if (refusal == Refusal::Never) return fail_for_ever(shape, why, effects);
  // Those that were asked for together count once: what ended one of them may have ended all.
  if (shape.pause_until && now < *shape.pause_until) return;
  ++shape.failed_starts;
  const auto most = refusal == Refusal::ProgramFailed ? kMostFailedPrograms : kMostFailedStarts;
  if (shape.failed_starts >= most && shape.leases.empty()) {
    auto how = why;
    how.message =
        fmt::format("{} worker processes did not start, one after the other; the last: {}",
                    shape.failed_starts, why.message);
    end_pause(shape);
    return fail_queue(shape, how, effects);
  }
  const auto pause = std::min<std::chrono::milliseconds>(
      kLongestPause, kFirstPause * (1 << std::min(shape.failed_starts - 1, 16)));
  if (!shape.pause_until) ++pausing_;
  shape.pause_until = now + pause;
  // One may always happen.
  if (refusal == Refusal::ProgramFailed || shape.failed_starts != 2) return;
  effects.emplace_back(
      Warn{fmt::format("worker processes do not start ({} so far; the next try is in {} ms): {}",
                       shape.failed_starts, pause.count(), why.message)});
}

void LeaseBook::end_pause(Shape& shape) {
  shape.failed_starts = 0;
  if (std::exchange(shape.pause_until, std::nullopt)) --pausing_;
}

void LeaseBook::fail_queue(Shape& shape, const Failure& why, Effects& effects) {
  for (auto& task : shape.queue.take_all()) fail(*task, why, effects);
}

void LeaseBook::fail_for_ever(Shape& shape, const Failure& why, Effects& effects) {
  for (auto& task : shape.queue.take_all()) {
    auto named = why;
    if (why.kind == Failure::Kind::Impossible)
      named.message = fmt::format("{} can never be placed: {}", task->label, why.message);
    fail(*task, std::move(named), effects);
  }
}

Lease* LeaseBook::lease(LeaseId id) const {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : found->second.get();
}

void LeaseBook::recalled(LeaseId id, Effects& effects) {
  auto* found = lease(id);
  if (!found) return;
  found->recalled = true;
  if (found->has_channel) take_back_line(*found, effects);
  changed(*found->shape);
}

ProcessId LeaseBook::lease_lost(LeaseId id) {
  auto* found = lease(id);
  if (!found) return {};
  const auto process = found->process;
  found->recalled = true;
  found->lost = true;
  changed(*found->shape);
  return process;
}

void LeaseBook::channel_opened(ProcessId process) {
  for (auto& [id, lease] : leases_) {
    if (lease->process != process || lease->lost) continue;
    lease->has_channel = true;
    changed(*lease->shape);
  }
}

void LeaseBook::drop(Lease& lease) {
  assert(lease.line.empty());
  std::erase(lease.shape->leases, &lease);
  leases_.erase(lease.id);
}

// ---- time ---------------------------------------------------------------------------------------

void LeaseBook::turn(TimePoint now, Effects& effects) {
  for (auto* shape : std::exchange(changed_, {})) {
    shape->changed = false;
    dispatch(*shape, true, effects);
    give_back_idle(*shape, now, effects);
    demand(*shape, now, effects);
    rest(*shape);
  }
}

void LeaseBook::demand(Shape& shape, TimePoint now, Effects& effects) {
  auto wanted = shape.leases_wanted();
  if (shape.queue.empty() && shape.pause_until) end_pause(shape);
  if (shape.pause_until) wanted = now < *shape.pause_until ? 0 : std::min<std::size_t>(wanted, 1);
  while (shape.asks.size() > wanted) {
    const auto ask = shape.asks.back();
    shape.asks.pop_back();
    asks_.erase(ask);
    effects.emplace_back(Withdraw{ask});
  }
  while (shape.asks.size() < wanted) {
    const auto ask = ++last_ask_;
    shape.asks.push_back(ask);
    asks_.emplace(ask, &shape);
    effects.emplace_back(Ask{ask, &shape.need});
  }
}

void LeaseBook::tick(TimePoint now, Effects& effects) {
  for (auto& [key, shape] : shapes_) {
    if (shape->idle || (shape->leases.empty() && !shape->pause_until)) continue;
    look_for_stuck(*shape, effects);
    changed(*shape);
  }
  turn(now, effects);
}

/// The first in line was there at the last tick: it takes long, or waits for what may stand behind
/// it, or in the queue.
void LeaseBook::look_for_stuck(Shape& shape, Effects& effects) {
  for (auto* lease : shape.leases) {
    const auto* first = lease->line.empty() ? nullptr : lease->line.front().get();
    lease->stuck = first && lease->seen_first == first;
    lease->seen_first = first;
    if (!lease->stuck || lease->lost || (lease->line.size() == 1 && shape.queue.empty())) continue;
    shape.run_time = std::max<std::chrono::nanoseconds>(shape.run_time, kTick);
    take_back_line(*lease, effects);
  }
}

/// What stands in line behind the first one and has not begun goes back to the head of the queue,
/// in its order.
void LeaseBook::take_back_line(Lease& lease, Effects& effects) {
  for (std::size_t i = lease.line.size(); i-- > 1;) {
    const auto& task = lease.line[i];
    if (!std::exchange(task->taking_back, true)) effects.emplace_back(TakeBack{task});
  }
}

void LeaseBook::give_back_idle(Shape& shape, TimePoint now, Effects& effects) {
  for (std::size_t i = shape.leases.size(); i-- > 0;) {
    auto& lease = *shape.leases[i];
    if (!lease.line.empty()) continue;
    if (!lease.idle_since) lease.idle_since = now;
    if (!lease.recalled && now - *lease.idle_since < kLinger) continue;
    if (!lease.lost) effects.emplace_back(GiveBack{lease.id});
    drop(lease);
  }
}

// ---- invariants ---------------------------------------------------------------------------------

void LeaseBook::check() const {
  std::size_t asks = 0;
  std::size_t leases = 0;
  std::size_t pausing = 0;
  for (const auto& [key, shape] : shapes_) {
    assert(shape->asks.size() <= kMostAsks);
    assert(!shape->idle || (shape->tasks == 0 && shape->leases.empty() && shape->asks.empty()));
    asks += shape->asks.size();
    leases += shape->leases.size();
    pausing += shape->pause_until ? 1 : 0;
    std::size_t placed = shape->queue.size();
    for (const auto* lease : shape->leases) {
      assert(lease->shape == shape.get() && this->lease(lease->id) == lease);
      assert(!lease->lost || lease->recalled);
      placed += lease->line.size();
      for (const auto& task : lease->line) {
        assert(!task->stands_alone() || lease->line.size() == 1);
        assert(task->stage == Stage::Sent && task->lease == lease && task->shape == shape.get());
      }
    }
    assert(placed <= shape->tasks);
  }
  assert(asks == asks_.size() && leases == leases_.size() && pausing == pausing_);
  assert(idle_.size() <= kIdleShapes);
}

}  // namespace troupe::tasks
