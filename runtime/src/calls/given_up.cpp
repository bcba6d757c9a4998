#include "calls/given_up.hpp"

#include <cstdint>
#include <limits>

#include <capnp/serialize.h>

#include "calls/channel/record.hpp"
#include "wire/codec.hpp"

namespace troupe::runtime {
namespace {

void drop_refs(wire::Call::Reader call, wire::Call::Builder into) {
  into.setId(call.getId());
  into.setKind(call.getKind());
  into.setGivenUp(true);
  const auto arguments = call.getArgs();
  auto out = into.initArgs(arguments.size());
  for (unsigned i = 0; i < arguments.size(); ++i) out[i].setRefs(arguments[i].getRefs());
}

void write(wire::Message::Reader message, const Failure& why, wire::Message::Builder into) {
  switch (message.which()) {
    case wire::Message::CALL:
      return drop_refs(message.getCall(), into.initCall());
    case wire::Message::REPLY:
      into.initReply().setId(message.getReply().getId());
      return write_failure(into.getReply().initOutcome().initFailure(), why);
    case wire::Message::FETCHED:
      into.initFetched().setId(message.getFetched().getId());
      return write_failure(into.getFetched().initOutcome().initFailure(), why);
    case wire::Message::RENDEZVOUSED:
      into.initRendezvoused().setId(message.getRendezvoused().getId());
      return write_failure(into.getRendezvoused().initFailure(), why);
    default:
      return into.setSkip();
  }
}

bool has_to_arrive(wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::BORROW:
    case wire::Message::CANCEL:
    case wire::Message::CHANNEL_START:
    case wire::Message::CHANNEL_END:
    case wire::Message::SKIP:
      return true;
    case wire::Message::CALL:
      return message.getCall().getGivenUp();
    default:
      return false;
  }
}

auto read(std::span<const char> body, const auto& with) {
  const kj::ArrayPtr<const capnp::word> segments[] = {
      {reinterpret_cast<const capnp::word*>(body.data()), body.size() / sizeof(capnp::word)}};
  const capnp::ReaderOptions options{.traversalLimitInWords =
                                         std::numeric_limits<std::uint64_t>::max()};
  capnp::SegmentArrayMessageReader reader(segments, options);
  return with(reader.getRoot<wire::Message>());
}

}  // namespace

std::optional<transport::Outgoing> given_up(std::span<const char> body, const Failure& why) {
  return read(body, [&](wire::Message::Reader message) -> std::optional<transport::Outgoing> {
    if (has_to_arrive(message)) return std::nullopt;
    transport::Outgoing instead;
    write(message, why, instead.root());
    return instead;
  });
}

std::uint64_t channel_call(std::span<const char> body) {
  return read(body, [](wire::Message::Reader message) {
    const auto call = message.isCall() ? message.getCall().getId() : 0;
    return ChannelCallId::is(call) ? call : 0;
  });
}

}  // namespace troupe::runtime
