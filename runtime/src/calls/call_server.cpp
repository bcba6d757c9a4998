#include "calls/call_server.hpp"

#include <utility>

#include <fmt/format.h>

#include "calls/calls.hpp"
#include "objects/stored.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

AddressPtr only_id(ProcessId process) {
  return std::make_shared<const Address>(Address{.process = process});
}

/// Of what one message carries of it.
std::size_t bytes_of(const Outcome& outcome) {
  const auto* value = std::get_if<detail::Payload>(&outcome);
  return value && value->bytes.size() <= kLargestValue ? value->bytes.size() : 0;
}

}  // namespace

/// Its caller has been told that it failed. What its arguments refer to is let go; its place in a
/// channel is passed over.
void CallServer::on_given_up_call(ProcessId caller, wire::Call::Reader call) {
  for (auto argument : call.getArgs()) exports_.read(argument);
  if (!ChannelCallId::is(call.getId())) return;
  executor_.push({.caller = caller,
                  .stage = std::make_shared<std::atomic<Work::Stage>>(Work::Stage::GivenUp),
                  .place = Work::Place{.caller = caller, .call = call.getId()}});
}

void CallServer::on_call(ProcessId caller, wire::Call::Reader call) {
  if (call.getGivenUp()) return on_given_up_call(caller, call);
  const auto id = call.getId();
  auto reply = [this, caller, id](const Outcome& outcome, std::chrono::nanoseconds run_time,
                                  ReplyPlace kept) {
    forget(caller, id);
    send_outcome(caller, id, outcome, run_time, kept);
  };
  const auto* function =
      detail::find_function(call.getFunction().getName(), call.getFunction().getOffset());
  if (!function || !runs_calls_) {
    return reply(Failure{.kind = Failure::Kind::Program,
                         .message = fmt::format(
                             "{}: {}", place_,
                             detail::why_no_function(call.getFunction().getLabel().cStr()))},
                 {}, 0);
  }
  if (call.hasGang()) callbacks_.on_gang(call.getGang());
  Work work{.kind = static_cast<Work::Kind>(call.getKind()),
            .function = function,
            .caller = caller,
            .arguments = {},
            .stage = std::make_shared<std::atomic<Work::Stage>>(Work::Stage::Waiting),
            .done = reply,
            .by_value = call.getByValue(),
            .number = id,
            .called = call.getCalled()};
  for (auto argument : call.getArgs()) {
    work.arguments.push_back(exports_.read(argument));
    if (const auto& stored = work.arguments.back().stored) store_.prefetch(stored->place());
  }
  if (ChannelCallId::is(id)) work.place = Work::Place{.caller = caller, .call = id};
  running_[caller][id] = {.stage = work.stage, .label = function->key.label, .reply = reply};
  executor_.push(std::move(work));
}

/// What it called may run on; nobody waits for that any more.
void CallServer::forget(ProcessId caller) { running_.erase(caller); }

void CallServer::forget(ProcessId caller, std::uint64_t call) {
  const auto calls = running_.find(caller);
  if (calls == running_.end()) return;
  calls->second.erase(call);
  if (calls->second.empty()) running_.erase(calls);
}

/// One that has not begun is answered here, whatever runs before it.
void CallServer::on_cancel(ProcessId caller, std::uint64_t id) {
  const auto calls = running_.find(caller);
  if (calls == running_.end()) return;
  const auto call = calls->second.find(id);
  if (call == calls->second.end()) return;
  auto expected = Work::Stage::Waiting;
  if (!call->second.stage->compare_exchange_strong(expected, Work::Stage::GivenUp)) return;
  const auto running = call->second;
  running.reply(
      Failure{.kind = Failure::Kind::Cancelled,
              .message = fmt::format("{} was cancelled before it started", running.label)},
      {}, 0);
}

void CallServer::on_fetch(ProcessId caller, wire::Fetch::Reader fetch) {
  auto answer = [this, caller, id = fetch.getId()](const Outcome& outcome) {
    peers_.answer_to(caller, bytes_of(outcome), [&](wire::Message::Builder message) {
      auto out = message.initFetched();
      out.setId(id);
      write_outcome(out.initOutcome(), outcome, caller);
    });
  };
  auto object = exports_.find(fetch.getObject());
  if (!object) {
    return answer(Failure{.kind = Failure::Kind::ObjectLost,
                          .message = "the value of this ref was given up by its owner"});
  }
  object->when_ready([object, answer] { answer(object->outcome()); });
}

void CallServer::send_outcome(ProcessId caller, std::uint64_t call, const Outcome& outcome,
                              std::chrono::nanoseconds run_time, ReplyPlace kept) {
  const bool sent = peers_.answer_to(
      caller, bytes_of(outcome),
      [&](wire::Message::Builder message) {
        auto out = message.initReply();
        out.setId(call);
        out.setRunNs(static_cast<std::uint64_t>(run_time.count()));
        write_outcome(out.initOutcome(), outcome, caller);
      },
      kept);
  if (sent) return;
  executor_.on_replies_arrived(caller, kept);
  free_result(outcome);
}

void CallServer::write_outcome(wire::Outcome::Builder into, const Outcome& outcome, ProcessId to) {
  const auto* value = std::get_if<detail::Payload>(&outcome);
  if (!value) return write_failure(into.initFailure(), std::get<Failure>(outcome));
  if (value->bytes.size() > kLargestValue)
    return write_failure(into.initFailure(), too_large("a value", value->bytes.size()));
  // Whoever hears of it finds it, also where this process ends now.
  if (value->stored) store_.flush();
  exports_.write(into.initValue(), *value, only_id(to));
}

/// Of a call whose caller cannot be told: a result in the store, which is the caller's, would stay
/// until that one ends.
void CallServer::free_result(const Outcome& outcome) {
  const auto* value = std::get_if<detail::Payload>(&outcome);
  if (value && value->stored && !value->stored->is_own()) store_.free(value->stored->place());
}

}  // namespace troupe::runtime
