#include "calls/calls.hpp"

#include <memory>

#include <fmt/format.h>

#include "api/signature.hpp"
#include "calls/resolver.hpp"
#include "ids/session.hpp"
#include "objects/stored.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

std::size_t size_of(const std::vector<detail::Argument>& arguments) {
  std::size_t bytes = 0;
  for (const auto& argument : arguments) bytes += Resolver::value_of(argument).bytes.size();
  return bytes;
}

/// Another machine counts other ticks.
std::uint64_t unix_ns_of(os::Ticks called) {
  const auto ago = os::duration_of(os::ticks() - called);
  return os::unix_ns() - static_cast<std::uint64_t>(ago.count());
}

std::shared_ptr<void> hold_stored(const std::vector<detail::Argument>& arguments) {
  auto held = std::make_shared<std::vector<detail::Argument>>();
  for (const auto& argument : arguments) {
    if (Resolver::value_of(argument).stored) held->push_back(argument);
  }
  return held->empty() ? nullptr : held;
}

/// Of a function that the callee's program lacks, the caller's own program knows the signature.
Outcome with_own_signature(Outcome outcome, const detail::FunctionKey& function) {
  auto* failure = std::get_if<Failure>(&outcome);
  if (failure != nullptr && failure->kind == Failure::Kind::Program)
    failure->message +=
        fmt::format("; the caller's '{}' is {}", function.label, detail::signature_of(function));
  return outcome;
}

}  // namespace

void Calls::send(const AddressPtr& to, const OutgoingCall& call, PendingCall direct) {
  if (const auto bytes = size_of(call.arguments); bytes > kLargestValue) {
    auto* receiver = direct.receiver;
    return receiver->answered(
        std::move(direct),
        too_large(fmt::format("the arguments of {}", call.function.label), bytes), {});
  }
  for (const auto& argument : call.arguments) {
    const auto& stored = Resolver::value_of(argument).stored;
    if (!stored || !stored->is_stale()) continue;
    auto* receiver = direct.receiver;
    return receiver->answered(std::move(direct), of_an_ended_session(), {});
  }
  direct.held = hold_stored(call.arguments);
  direct.called = call.called;
  const auto result = direct.result;
  if (auto through = channel(to->process)) {
    const auto id =
        call.gang ? std::nullopt : through->send(call.kind, call.function, call.arguments, direct);
    if (!id) return send_via_socket(to, call, through, std::move(direct));
    result->set_on_cancel([through, id = *id] { through->cancel(id); });
    return;
  }
  auto waiting = std::make_shared<PendingCall>(std::move(direct));
  const auto id = peers_.request(
      to,
      [&](wire::Message::Builder message, std::uint64_t id) {
        write(message.initCall(), call, to, id);
      },
      [waiting, function = call.function](Outcome outcome, std::optional<Progress> lost,
                                          std::chrono::nanoseconds run_time) {
        auto* receiver = waiting->receiver;
        if (!lost) {
          return receiver->answered(std::move(*waiting),
                                    with_own_signature(std::move(outcome), function), run_time);
        }
        receiver->lost(std::move(*waiting), *lost, std::get<Failure>(outcome));
      });
  let_cancel(result, to, id);
  if (!to->access) peers_.channels().talked(to->process);
}

void Calls::send_via_socket(const AddressPtr& to, const OutgoingCall& call,
                            const OutChannelPtr& channel, PendingCall direct) {
  const auto result = direct.result;
  const auto id = channel->send_via_socket(direct);
  if (!id) {
    auto* receiver = direct.receiver;
    return receiver->lost(std::move(direct), Progress::NotBegun, channel->why_closed());
  }
  peers_.send(to, [&](wire::Message::Builder message, std::uint64_t) {
    write(message.initCall(), call, to, *id);
  });
  let_cancel(result, to, *id);
}

void Calls::write(wire::Call::Builder out, const OutgoingCall& call, const AddressPtr& to,
                  std::uint64_t id) {
  out.setId(id);
  out.setKind(static_cast<std::uint8_t>(call.kind));
  out.getFunction().setName(call.function.name);
  out.getFunction().setOffset(call.function.offset);
  out.getFunction().setLabel(std::string(call.function.label));
  out.setByValue(to->access != nullptr);
  out.setLease(call.lease.value());
  out.setAttempt(call.attempt);
  if (call.called != 0) out.setCalled(unix_ns_of(call.called));
  write_address(out.initCaller(), *self_);
  auto arguments = out.initArgs(static_cast<unsigned>(call.arguments.size()));
  for (unsigned i = 0; i < arguments.size(); ++i)
    exports_.write(arguments[i], Resolver::value_of(call.arguments[i]), to);
  if (call.gang) call.gang(out.initGang());
}

void Calls::let_cancel(const detail::ObjectPtr& result, const AddressPtr& to, std::uint64_t id) {
  result->set_on_cancel([this, to, id] {
    peers_.send(to, [id](wire::Message::Builder message, std::uint64_t) { message.setCancel(id); });
  });
}

Failure too_large(const std::string& what, std::size_t bytes) {
  return Failure{
      .kind = Failure::Kind::TooLarge,
      .message = fmt::format("{} take {} bytes; one message carries at most {}: pass it in pieces",
                             what, bytes, kLargestValue)};
}

}  // namespace troupe::runtime
