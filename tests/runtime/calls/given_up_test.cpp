// What stands in a stream in place of a message that was given up.
#include <span>
#include <string>
#include <vector>

#include <capnp/serialize.h>
#include <catch2/catch.hpp>

#include "calls/channel/record.hpp"
#include "calls/given_up.hpp"
#include "wire/codec.hpp"

using namespace troupe;
using namespace troupe::runtime;
using transport::Outgoing;

namespace {

const Failure kWhy{.kind = Failure::Kind::Disconnected, .message = "it cannot be reached"};

Outgoing call_of(std::uint64_t id) {
  Outgoing message;
  auto call = message.root().initCall();
  call.setId(id);
  auto argument = call.initArgs(1)[0];
  argument.setData(kj::arrayPtr(reinterpret_cast<const kj::byte*>("a value"), 7));
  argument.initRefs(1)[0].setObject(42);
  return message;
}

}  // namespace

TEST_CASE("a call that was given up keeps its id and its refs, and does not run",
          "[runtime][calls][given_up]") {
  auto call = call_of(7);
  auto instead = given_up(call.body(), kWhy);
  REQUIRE(instead);
  const auto out = instead->root().asReader().getCall();
  CHECK(out.getId() == 7);
  CHECK(out.getGivenUp());
  REQUIRE(out.getArgs().size() == 1);
  CHECK(out.getArgs()[0].getData().size() == 0);
  REQUIRE(out.getArgs()[0].getRefs().size() == 1);
  CHECK(out.getArgs()[0].getRefs()[0].getObject() == 42);
  CHECK(!given_up(instead->body(), kWhy));  // once is enough
}

TEST_CASE("a reply that was given up says why, and what refs and order depend on stays",
          "[runtime][calls][given_up]") {
  Outgoing reply;
  reply.root().initReply().setId(9);
  auto instead = given_up(reply.body(), kWhy);
  REQUIRE(instead);
  CHECK(instead->root().asReader().getReply().getId() == 9);
  CHECK(std::string(instead->root().asReader().getReply().getOutcome().getFailure().getMessage()) ==
        kWhy.message);
  Outgoing rendezvoused;
  rendezvoused.root().initRendezvoused().setId(5);
  instead = given_up(rendezvoused.body(), kWhy);
  REQUIRE(instead);
  const auto answer = instead->root().asReader().getRendezvoused();
  CHECK(answer.getId() == 5);
  REQUIRE(answer.isFailure());
  CHECK(read_failure(answer.getFailure()).kind == kWhy.kind);
  CHECK(read_failure(answer.getFailure()).message == kWhy.message);
  Outgoing fetch;
  fetch.root().initFetch().setId(3);
  auto skip = given_up(fetch.body(), kWhy);
  REQUIRE(skip);
  CHECK(skip->root().asReader().isSkip());
  Outgoing borrow;
  borrow.root().initBorrow().setDelta(-1);
  CHECK(!given_up(borrow.body(), kWhy));
}

TEST_CASE("the content of a call whose place stands in a channel is told apart",
          "[runtime][calls][given_up]") {
  const auto place = ChannelCallId{.slot = 3, .use = 1}.packed();
  auto through_channel = call_of(place);
  CHECK(channel_call(through_channel.body()) == place);
  auto through_socket = call_of(7);
  CHECK(channel_call(through_socket.body()) == 0);
}
