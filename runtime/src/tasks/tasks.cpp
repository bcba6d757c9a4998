#include "tasks/tasks.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include <troupe/detail/call.hpp>

#include "log/log.hpp"
#include "wire/codec.hpp"

/// Performs what the lease book decides: which task runs where, again after the death of a process, or
/// not at all, stands there.
namespace troupe::runtime {
namespace {

tasks::Refusal refusal_of(const Failure& why) {
  if (why.kind == Failure::Kind::Program) return tasks::Refusal::ProgramFailed;
  return why.kind == Failure::Kind::ProcessDied ? tasks::Refusal::ProcessFailed
                                                : tasks::Refusal::Never;
}

}  // namespace

// ---- events -------------------------------------------------------------------------------------

/// What concerns sockets and the head comes of events of the loop alone.
template <class Event>
void Tasks::apply(Event&& event) {
  Effects effects;
  bool turn = false;
  {
    const std::lock_guard lock(mutex_);
    event(effects);
    perform_here(effects);
    checks_.on_event([this] { book_.check(); });
    turn = book_.wants_turn() && !std::exchange(turn_posted_, true);
  }
  if (turn) post_turn();
  for (auto& effect : effects) {
    std::visit([this](auto& what) { perform(what); }, effect);
  }
}

void Tasks::submit(detail::CallSpec spec, const detail::RequestOptions& options,
                   const detail::ObjectPtr& result) {
  auto task = std::make_shared<Task>();
  task->call.function = spec.function;
  task->call.called = os::ticks();
  task->label = spec.function.label;
  task->result = result;
  task->tries_left = options.retries < 0 ? kDefaultRetries : options.retries;
  result->source.is_task = true;
  result->source.label = task->label;
  result->source.task = task;
  if (Resolver::is_here(spec.arguments)) {
    task->call.arguments = std::move(spec.arguments);
    task->fits_channel = OutChannel::carries(task->call.arguments);
    OutChannelPtr through;
    std::uint64_t direct = 0;
    apply([&](Effects& effects) {
      auto& submitted = *task;  // kept by the book, or by the effects
      book_.submit(std::move(task), options, true, effects);
      perform_here(effects);
      if (submitted.direct == 0 || !submitted.lease) return;
      through = mine(*submitted.lease).channel;
      direct = submitted.direct;
    });
    if (through) through->drain_now_and_then(direct);
    return;
  }
  apply([&](Effects& effects) { book_.submit(task, options, false, effects); });
  boost::asio::post(loop_, [this, task, arguments = std::move(spec.arguments)]() mutable {
    resolver_.resolve(std::move(arguments), [this, task](Resolver::Resolved resolved) {
      if (auto* failure = std::get_if<Failure>(&resolved)) {
        return apply([&](Effects& effects) { book_.arguments_failed(task, *failure, effects); });
      }
      task->call.arguments = std::move(std::get<0>(resolved));
      task->fits_channel = OutChannel::carries(task->call.arguments);
      apply([&](Effects& effects) { book_.arguments_here(task, effects); });
    });
  });
}

std::string Tasks::state_of(const detail::Object& result) {
  const auto task = std::static_pointer_cast<Task>(result.source.task.lock());
  if (!task) return {};
  const std::lock_guard lock(mutex_);
  switch (task->stage) {
    case tasks::BookedTask::Stage::AwaitsArguments:
      return "it waits for its arguments";
    case tasks::BookedTask::Stage::Queued:
      return "it waits for a place: `troupe status` says for which";
    case tasks::BookedTask::Stage::Sent:
      return fmt::format("it {} in process {}",
                         task->lease->line.front() == task ? "runs" : "stands in line",
                         task->lease->process);
    case tasks::BookedTask::Stage::Over:
      return {};
  }
  return {};
}

bool Tasks::cancel(const detail::ObjectPtr& result) {
  const auto task = std::static_pointer_cast<Task>(result->source.task.lock());
  if (!task) return false;
  apply([&](Effects& effects) { book_.cancel(task, effects); });
  return true;
}

void Tasks::answered(PendingCall call, Outcome outcome, std::chrono::nanoseconds run_time) {
  const auto task = std::static_pointer_cast<Task>(std::move(call.context));
  const auto* failure = std::get_if<Failure>(&outcome);
  const bool given_up =
      failure && failure->kind == Failure::Kind::Cancelled && run_time.count() == 0;
  bool answers = true;
  apply([&](Effects& effects) {
    if (given_up && task->taking_back) {
      answers = false;
      return book_.taken_back(*task, effects);
    }
    answers = book_.answered(*task, run_time, effects);
  });
  if (answers) task->result->complete(std::move(outcome));
}

void Tasks::lost(PendingCall call, Progress progress, const Failure& how) {
  const auto task = std::static_pointer_cast<Task>(std::move(call.context));
  apply([&](Effects& effects) { book_.lost(*task, progress, how, effects); });
}

void Tasks::recalled(LeaseId lease) {
  apply([&](Effects& effects) { book_.recalled(lease, effects); });
}

ProcessId Tasks::lost(LeaseId lease) {
  ProcessId process{};
  apply([&](Effects&) { process = book_.lease_lost(lease); });
  channels_version_.fetch_add(1, std::memory_order_release);
  return process;
}

void Tasks::channel_opened(const OutChannelPtr& channel) {
  apply([&](Effects&) {
    book_.for_each_lease([&](tasks::Lease& lease) {
      if (lease.process == channel->callee()) mine(lease).channel = channel;
    });
    book_.channel_opened(channel->callee());
  });
  channels_version_.fetch_add(1, std::memory_order_release);
}

std::vector<OutChannelPtr> Tasks::channels() {
  std::vector<OutChannelPtr> found;
  const std::lock_guard lock(mutex_);
  book_.for_each_lease([&](tasks::Lease& lease) {
    if (mine(lease).channel) found.push_back(mine(lease).channel);
  });
  return found;
}

// ---- effects under the mutex: what goes through channels ----------------------------------------

/// In the order given; what each makes of its answer follows at the end. The rest is left for
/// perform().
void Tasks::perform_here(Effects& effects) {
  for (std::size_t i = 0; i < effects.size(); ++i) {
    if (auto* sent = std::get_if<tasks::Send>(&effects[i])) {
      if (!sent->task) continue;
      auto& task = mine(*sent->task);
      task.direct = 0;
      if (!task.by_channel) continue;
      sent->task = nullptr;
      if (!send_through_channel(task)) book_.lost(task, Progress::NotBegun, {}, effects);
    } else if (auto* back = std::get_if<tasks::TakeBack>(&effects[i])) {
      if (!back->task || mine(*back->task).direct == 0) continue;
      const auto task = std::static_pointer_cast<Task>(std::move(back->task));
      if (mine(*task->lease).channel->revoke(task->direct)) {
        book_.taken_back(*task, effects);
      } else {
        book_.runs_on(*task);
      }
    }
  }
}

/// Without its result, of which the task itself knows.
PendingCall Tasks::direct_of(Task& task) {
  return {.receiver = this,
          .context = std::static_pointer_cast<Task>(task.shared_from_this()),
          .label = task.label,
          .called = task.call.called};
}

bool Tasks::send_through_channel(Task& task) {
  auto direct = direct_of(task);
  const auto id =
      mine(*task.lease)
          .channel->send(Work::Kind::Task, task.call.function, task.call.arguments, direct);
  task.direct = id.value_or(0);
  return id.has_value();
}

// ---- effects after it: sockets, the head, the ends of tasks -------------------------------------

void Tasks::perform(tasks::Send& send) {
  if (!send.task) return;
  AddressPtr to;
  PendingCall direct;
  std::shared_ptr<Task> task;
  {
    const std::lock_guard lock(mutex_);
    task = std::static_pointer_cast<Task>(send.task->shared_from_this());
    task->call.lease = task->lease->id;
    task->call.attempt = task->deaths;
    to = mine(*task->lease).address;
    direct = direct_of(*task);
    direct.result = task->result;  // which cancels it there
  }
  calls_.send(to, task->call, std::move(direct));
}

/// Through the socket, what has not begun comes back as cancelled.
void Tasks::perform(tasks::TakeBack& back) {
  if (!back.task) return;
  if (auto cancel = mine(*back.task).result->take_on_cancel()) return cancel();
  const std::lock_guard lock(mutex_);
  book_.runs_on(*back.task);
}

void Tasks::perform(tasks::Fail& end) { mine(*end.task).result->complete(std::move(end.how)); }

void Tasks::perform(tasks::Ask& ask) {
  const auto refused = std::make_shared<bool>(false);  // at once, where there is no head any more
  const auto id = head_.request(
      [&](wire::HeadRequest::Builder out) { write_request(out.initLease(), *ask.need); },
      [this, number = ask.ask](wire::HeadNotice::Reader tell) { granted(number, tell.getLease()); },
      [this, number = ask.ask, refused](const Failure& why) {
        *refused = true;
        asked_.erase(number);
        apply([&](Effects& effects) {
          book_.refused(number, refusal_of(why), why, Clock::now(), effects);
        });
      });
  if (!*refused) asked_.emplace(ask.ask, id);
}

void Tasks::perform(tasks::Withdraw& withdraw) {
  if (const auto asked = asked_.extract(withdraw.ask); !asked.empty())
    head_.withdraw(asked.mapped());
}

void Tasks::perform(tasks::GiveBack& back) {
  channels_version_.fetch_add(1, std::memory_order_release);
  head_.notify(
      [lease = back.lease](wire::HeadRequest::Builder ask) { ask.setLeaseReturn(lease.value()); });
}

void Tasks::perform(tasks::Warn& warning) { log::warn(warning.text); }

void Tasks::granted(tasks::AskId ask, wire::LeaseGrant::Reader grant) {
  asked_.erase(ask);
  auto lease = std::make_unique<Lease>();
  lease->id = LeaseId(grant.getLease());
  lease->address = read_address(grant.getProcess());
  lease->process = lease->address->process;
  bool wanted = false;
  apply([&](Effects& effects) {
    lease->channel = calls_.channel(lease->process);
    lease->has_channel = lease->channel != nullptr;
    tasks::GiveBack back{lease->id};
    wanted = book_.granted(ask, std::move(lease));
    if (!wanted) effects.emplace_back(back);
  });
  channels_version_.fetch_add(1, std::memory_order_release);
  watch();
}

// ---- time ---------------------------------------------------------------------------------------

void Tasks::post_turn() {
  boost::asio::post(loop_, [this] {
    apply([&](Effects& effects) {
      turn_posted_ = false;
      book_.turn(Clock::now(), effects);
    });
    watch();
  });
}

/// Runs as long as the book wants it.
void Tasks::watch() {
  {
    const std::lock_guard lock(mutex_);
    if (ticking_ || !book_.wants_ticks()) return;
  }
  ticking_ = true;
  tick_.expires_after(tasks::LeaseBook::kTick);
  tick_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    ticking_ = false;
    apply([&](Effects& effects) { book_.tick(Clock::now(), effects); });
    watch();
  });
}

}  // namespace troupe::runtime
