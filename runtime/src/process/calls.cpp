#include "process/calls.hpp"

#include <fmt/format.h>

#include "process/codec.hpp"

namespace troupe::process {
namespace {

std::size_t size_of(const std::vector<detail::Payload>& arguments) {
  std::size_t bytes = 0;
  for (const auto& argument : arguments) bytes += argument.bytes.size();
  return bytes;
}

}  // namespace

std::uint64_t Calls::send(const AddressPtr& to, const OutgoingCall& call, Peers::Done done) {
  if (const auto bytes = size_of(call.arguments); bytes > kLargestValue) {
    done(too_large(fmt::format("the arguments of {}", call.function.label), bytes));
    return 0;
  }
  return peers_.request(
      to,
      [&](wire::Message::Builder message, std::uint64_t id) {
        auto out = message.initCall();
        out.setId(id);
        out.setKind(static_cast<std::uint8_t>(call.kind));
        out.getFunction().setName(call.function.name);
        out.getFunction().setOffset(call.function.offset);
        out.getFunction().setLabel(std::string(call.function.label));
        out.setLease(call.lease);
        out.setAttempt(call.attempt);
        write_address(out.initCaller(), *self_);
        auto arguments = out.initArgs(static_cast<unsigned>(call.arguments.size()));
        for (unsigned i = 0; i < arguments.size(); ++i) exports_.write(arguments[i], call.arguments[i], to);
        if (call.gang) call.gang(out.initGang());
      },
      std::move(done));
}

void Calls::cancel(const AddressPtr& to, std::uint64_t id) {
  peers_.send(to, [id](wire::Message::Builder message, std::uint64_t) { message.setCancel(id); });
}

Failure too_large(const std::string& what, std::size_t bytes) {
  return Failure{.kind = Failure::Kind::TooLarge,
                 .message = fmt::format("{} take {} bytes; one message carries at most {}: pass it in pieces", what,
                                        bytes, kLargestValue)};
}

}  // namespace troupe::process
