#include "calls/executor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include <troupe/detail/failed_calls.hpp>
#include <troupe/detail/failure.hpp>
#include <troupe/gang_context.hpp>
#include "calls/by_value.hpp"
#include "objects/doorbell.hpp"
#include "objects/forked_copy.hpp"
#include "objects/process_context.hpp"
#include "objects/stored.hpp"
#include "os/standard_output.hpp"

namespace troupe::runtime {
namespace {

thread_local bool runs_user_code = false;
thread_local ProcessId calling_process{};

/// Calls of one channel before others get their turn.
constexpr int kTurn = 64;
/// That a call takes.
constexpr os::Ticks kShortest = 16;

const detail::Function* look_up(const CallHead& head, const detail::Function* last) {
  if (last && last->key.name == head.name && last->key.offset == head.offset) return last;
  return detail::find_function(head.name, head.offset);
}

Failure unknown_function(const std::string& place) {
  return {.kind = Failure::Kind::Program,
          .message = fmt::format(
              "{} has no such function: caller and worker process run different programs", place)};
}

/// Nothing for a task's: nobody waits for what a task would have done next.
std::optional<Failure> failure_of_actor(Work::Kind kind, const Outcome& outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  if (failure == nullptr || kind == Work::Kind::Task) return std::nullopt;
  return *failure;
}

bool has_stored(const detail::Payload& argument) { return argument.stored != nullptr; }

/// What large arguments could not be had, which is not the fault of user code.
std::optional<Failure> fetch(std::span<detail::Payload> arguments) {
  try {
    std::vector<detail::StoredValue*> stored;
    for (const auto& argument : arguments) {
      if (argument.stored) stored.push_back(argument.stored.get());
    }
    detail::fetch_together(stored);
    return std::nullopt;
  } catch (const Error& error) {
    return error.failure();
  }
}

}  // namespace

bool Executor::is_this_thread() { return runs_user_code; }
ProcessId Executor::caller() { return calling_process; }

// ---- what there is to do ------------------------------------------------------------------------

void Executor::push(Work work) {
  auto* node = new Node{std::move(work), pushed_.load(std::memory_order_relaxed)};
  while (!pushed_.compare_exchange_weak(node->next, node, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
  doorbell().ring();
}

std::vector<Work> Executor::take() {
  std::vector<Work> works;
  for (auto* node = pushed_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
    works.push_back(std::move(node->work));
    delete std::exchange(node, node->next);
  }
  std::reverse(works.begin(), works.end());
  return works;
}

bool Executor::has_work() const {
  return pushed_.load(std::memory_order_acquire) != nullptr ||
         std::ranges::any_of(channels_, [](const Channel& channel) {
           return !channel.stalled && !channel.in->empty();
         });
}

void Executor::keep_record(ExecutionRecord record) {
  record_ = std::move(record);
  replies_.emplace(record_->reply_memory());
}

void Executor::before_sleep() {
  for (auto& channel : channels_) channel.in->before_sleep();
}

void Executor::run() {
  runs_user_code = true;
  runs_calls_.store(true, std::memory_order_relaxed);
  const detail::CpuUser user(detail::CpuUse::OfCalls);
  process_ = ProcessContext::maybe();
  for (;;) {
    wait([this] { return has_work(); }, [this] { before_sleep(); }, std::nullopt);
    at_its_end_ = false;
    if (pushed_.load(std::memory_order_acquire) != nullptr) {
      for (auto& work : take()) handle(std::move(work));
      for (auto& channel : channels_) channel.stalled = false;
    }
    for (std::size_t i = 0; i < channels_.size(); ++i) serve(channels_[i]);
  }
}

void Executor::handle(Work work) {
  if (work.attach) {
    channels_.push_back({std::move(work.attach)});
  } else if (work.detach) {
    std::erase_if(channels_, [&](const Channel& channel) { return channel.in == work.detach; });
    std::erase_if(arrived_,
                  [&](const auto& entry) { return entry.first.caller == work.detach->caller(); });
  } else if (work.place) {
    const auto place = *work.place;
    arrived_.insert_or_assign(place, std::move(work));
  } else {
    call(std::move(work));
  }
}

// ---- calls from the loop ------------------------------------------------------------------------

void Executor::call(Work work, const ExecutionMark& mark) {
  if (work.kind == Work::Kind::Method && before_constructor()) {
    before_constructor_.push_back(std::move(work));
    return;
  }
  auto run = [this](Work& next, ExecutionMark noted) {
    auto expected = Work::Stage::Waiting;
    // Its caller has been told.
    if (!next.stage->compare_exchange_strong(expected, Work::Stage::Begun)) return;
    if (!noted.begun && record_) noted = record_->mark(next.caller, next.number);
    auto outcome = perform({.kind = next.kind,
                            .owner = next.by_value ? ProcessId() : next.caller,
                            .caller = next.caller,
                            .called_unix_ns = next.called,
                            .mark = noted},
                           *next.function, next.arguments);
    note_end(std::holds_alternative<Failure>(outcome));
    if (next.by_value) {
      outcome = by_value(std::move(outcome), next.function->key.label);
      at_its_end_ = false;  // that may have taken long
    }
    const auto failure = failure_of_actor(next.kind, outcome);
    answer_through_socket(next.caller, next.number, std::move(outcome), run_time(),
                          std::move(next.done));
    if (failure) detail::tell_failed_call(*failure);
  };
  run(work, mark);
  if (work.kind == Work::Kind::Constructor) after_constructor();
}

/// What came before the constructor has waited for it: calls from the loop here, others at the front
/// of their channels.
void Executor::after_constructor() {
  for (auto& method : std::exchange(before_constructor_, {})) call(std::move(method));
  for (auto& channel : channels_) channel.stalled = false;
}

// ---- replies through sockets --------------------------------------------------------------------

void Executor::answer_through_socket(ProcessId caller, std::uint64_t call, Outcome outcome,
                                     std::chrono::nanoseconds run_time, Work::Done send) {
  const auto kept = replies_ ? replies_->keep(caller, call, outcome, run_time) : 0;
  boost::asio::post(
      loop_, [this, caller, kept, run_time, send = std::move(send), outcome = std::move(outcome)] {
        send(outcome, run_time, kept);
        if (kept != 0) return;
        write_out_(caller, [this] { written_.release(); });
      });
  if (kept != 0) return;
  written_.acquire();
  at_its_end_ = false;  // that may have taken long
}

void Executor::on_replies_arrived(ProcessId caller, ReplyPlace last) {
  if (replies_) replies_->arrived(caller, last);
}

void Executor::on_caller_ended(ProcessId caller) {
  if (replies_) replies_->forget(caller);
}

// ---- calls from channels ------------------------------------------------------------------------

void Executor::serve(Channel& channel) {
  const auto in = channel.in;
  for (int calls = 0; calls < kTurn && !channel.stalled; ++calls) {
    const auto next = in->front();
    if (!next) {
      channel.stalled = in->broken();
      return;
    }
    channel.stalled = !run_next(*in, *next);
  }
}

/// False where it cannot run yet: it stays.
bool Executor::run_next(InChannel& channel, const InChannel::Call& next) {
  const auto& head = next.head;
  if (head.via_socket != 0) return run_via_socket(channel, next);
  const auto kind = static_cast<Work::Kind>(head.kind);
  if (kind == Work::Kind::Method && before_constructor()) return false;
  arguments_.resize(head.arguments);
  auto reader = next.arguments;
  for (auto& argument : arguments_) {
    const auto bytes = reader.bytes().value_or(std::string_view{});
    argument.bytes.assign(bytes);
    argument.refs.clear();
    argument.stored = nullptr;
  }
  channel.pop();
  last_ = look_up(head, last_);
  if (!last_) {
    channel.reply(head.id, unknown_function(place_), {});
    return true;
  }
  auto outcome = perform({.kind = kind,
                          .owner = channel.caller(),
                          .caller = channel.caller(),
                          .called = head.called,
                          .mark = next.mark},
                         *last_, arguments_);
  const bool failed = std::holds_alternative<Failure>(outcome);
  if (kind != Work::Kind::Task) {
    const auto failure = failure_of_actor(kind, outcome);
    channel.reply(head.id, std::move(outcome), {});
    note_end(failed);
    if (failure) detail::tell_failed_call(*failure);
    if (kind == Work::Kind::Constructor) after_constructor();
  } else {
    note_end(failed);
    channel.reply(head.id, std::move(outcome), run_time());
  }
  return true;
}

bool Executor::run_via_socket(InChannel& channel, const InChannel::Call& next) {
  auto arrived = arrived_.find({.caller = channel.caller(), .call = next.head.id});
  if (arrived == arrived_.end()) return false;
  auto work = std::move(arrived->second);
  if (work.kind == Work::Kind::Method && before_constructor()) {
    arrived->second = std::move(work);
    return false;
  }
  arrived_.erase(arrived);
  channel.pop();
  const auto stage = work.stage;
  call(std::move(work), next.mark);
  // Given up: else its answer, through the socket, makes its caller look for the room.
  if (*stage == Work::Stage::GivenUp) channel.passed_over();
  return true;
}

// ---- user code ----------------------------------------------------------------------------------

/// A process that ends while it brings arguments here has not begun the call.
Outcome Executor::perform(const Arrival& arrival, const detail::Function& function,
                          std::span<detail::Payload> arguments) {
  calling_process = arrival.owner;
  started_ = std::exchange(at_its_end_, false) ? ended_ : os::ticks();
  const bool waits = std::ranges::any_of(arguments, &has_stored);
  if (auto failure = waits ? fetch(arguments) : std::nullopt) {
    if (arrival.kind == Work::Kind::Constructor) construct_failure_ = failure;
    return std::move(*failure);
  }
  note_begin(arrival, function, waits ? os::ticks() : started_);
  arrival.mark.begin();
  has_call_.store(true, std::memory_order_relaxed);
  auto outcome = run_user_code(arrival.kind, function, arguments);
  has_call_.store(actor_ != nullptr, std::memory_order_relaxed);
  if (ProcessContext::maybe() != process_) end_copy(function.key.label);
  os::flush_standard_output();
  arrival.mark.finish();
  return outcome;
}

/// A call that was made after the last one ended begins no earlier than it was made.
void Executor::note_begin(const Arrival& arrival, const detail::Function& function, os::Ticks now) {
  if (!record_) return;
  CallHistory::Caller caller{.process = arrival.caller};
  if (arrival.called_unix_ns != 0) {
    const auto since = static_cast<std::int64_t>(os::unix_ns() - arrival.called_unix_ns);
    caller.waited = static_cast<std::uint64_t>(std::max<std::int64_t>(since, 0));
    caller.by_clock = true;
  } else if (arrival.called > now) {
    now = std::min(arrival.called, os::ticks());
  } else if (arrival.called != 0) {
    caller.waited = now - arrival.called;
  } else {
    caller.process = {};
  }
  record_->history().begin(static_cast<CallHistory::Kind>(arrival.kind), &function,
                           function.key.label, caller, now);
}

/// It takes some time, also where two processors count not quite alike: none would mean that it did
/// not run.
void Executor::note_end(bool failed) {
  ended_ = std::max(os::ticks(), started_ + kShortest);
  at_its_end_ = true;
  if (record_) record_->history().end(ended_, failed);
}

void Executor::on_wait_begun() {
  if (record_) record_->history().begin_wait(os::ticks());
}

void Executor::on_wait_ended() {
  if (record_) record_->history().end_wait(os::ticks());
}

Outcome Executor::run_user_code(Work::Kind kind, const detail::Function& function,
                                std::span<detail::Payload> arguments) {
  try {
    switch (kind) {
      case Work::Kind::Task:
        if (&function != named_ && record_) record_->set_label((named_ = &function)->key.label);
        return function.invoke(nullptr, arguments);
      case Work::Kind::Constructor:
        name_actor(function);
        actor_ = function.construct(arguments);
        return detail::Payload{};
      case Work::Kind::Method:
        if (construct_failure_) return *construct_failure_;
        return function.invoke(actor_.get(), arguments);
    }
  } catch (...) {
    auto failure = describe(function);
    if (kind == Work::Kind::Constructor) construct_failure_ = failure;
    return failure;
  }
  return Failure{.message = "a call of an unknown kind"};
}

/// Its methods run under this name too.
void Executor::name_actor(const detail::Function& constructor) {
  if (!record_) return;
  const GangContext* gang = this_gang();
  const auto name = gang ? fmt::format("rank {} {}", gang->rank(), constructor.key.label)
                         : std::string(constructor.key.label);
  record_->set_label(name);
  record_->history().set_role(name);
}

Failure Executor::describe(const detail::Function& function) const {
  return detail::current_failure(fmt::format("{}, {}", function.key.label, place_));
}

}  // namespace troupe::runtime
