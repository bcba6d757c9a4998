// The stream alone: messages and acknowledgements are lost with the connections that carry them,
// and arrive late. Each random sequence is told by its seed.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <capnp/serialize.h>
#include <catch2/catch.hpp>

#include "transport/harness.hpp"
#include "transport/stream/message_stream.hpp"

using namespace troupe;
using namespace troupe::transport;
using troupe::transport::test::text_message;

namespace {

std::string text_of(std::span<const char> body) {
  const kj::ArrayPtr<const capnp::word> segments[] = {
      {reinterpret_cast<const capnp::word*>(body.data()), body.size() / sizeof(capnp::word)}};
  capnp::SegmentArrayMessageReader reader(segments);
  return reader.getRoot<wire::Message>().getShutdown();
}

KeptMessage message(const std::string& text, std::uint64_t request = 0) {
  return {text_message(text), request};
}

/// One connection: what is on its way in both directions.
struct Wire {
  std::deque<StreamStart> start;
  std::deque<std::string> messages;
  std::deque<std::uint64_t> acks;
};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) { connect(); }

  void random_event() {
    switch (random_() % 8) {
      case 0:
      case 1:
        return push();
      case 2:
        if (random_() % 4 == 0) connect();
        return;
      case 3:
        return lose();
      case 4:
        return acknowledge();
      default:
        return arrive(*wires_[random_() % wires_.size()]);
    }
  }
  void settle() {
    connect();
    while (!wires_.back()->start.empty() || !wires_.back()->messages.empty())
      arrive(*wires_.back());
    sender.acknowledged(receiver.acknowledge());
  }

  StreamSender sender;
  StreamReceiver receiver;
  std::vector<std::string> pushed;
  std::vector<std::string> delivered;

 private:
  void push() {
    pushed.push_back(std::to_string(pushed.size()));
    if (random_() % 16 == 0) pushed.back() += std::string(40'000, ' ');
    sender.push(message(pushed.back()));
    transmit();
  }
  void transmit() {
    while (const auto* next = sender.next())
      wires_.back()->messages.push_back(text_of(next->body()));
  }
  /// What is on its way through the connections before it may still arrive.
  void connect() {
    wires_.push_back(std::make_unique<Wire>());
    wires_.back()->start.push_back(sender.start());
    transmit();
  }
  /// All that is on its way through a connection from some message on, as where it is cut.
  void lose() {
    auto& wire = *wires_[random_() % wires_.size()];
    if (!wire.messages.empty()) wire.messages.resize(random_() % wire.messages.size());
    wire.acks.clear();
    if (&wire == wires_.back().get()) connect();
  }
  void acknowledge() {
    if (receiver.owes()) wires_[random_() % wires_.size()]->acks.push_back(receiver.acknowledge());
  }
  void arrive(Wire& wire) {
    if (!wire.acks.empty()) {
      sender.acknowledged(wire.acks.front());
      wire.acks.pop_front();
    }
    if (!wire.start.empty()) {
      REQUIRE(receiver.start(&wire, wire.start.front()));
      return wire.start.pop_front();
    }
    if (wire.messages.empty()) return;
    if (receiver.receive(&wire, wire.messages.front().size()))
      delivered.push_back(wire.messages.front());
    wire.messages.pop_front();
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Wire>> wires_;
};

}  // namespace

TEST_CASE("each message is delivered once and in order, whatever connections lose",
          "[runtime][transport][stream][property]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (int i = 0; i < 400; ++i) {
      world.random_event();
      REQUIRE(world.delivered.size() <= world.pushed.size());
      REQUIRE(std::equal(world.delivered.begin(), world.delivered.end(), world.pushed.begin()));
    }
    world.settle();
    REQUIRE(world.delivered == world.pushed);
    REQUIRE(world.sender.empty());
    REQUIRE(world.sender.kept_bytes() == 0);
  }
}

TEST_CASE("an acknowledgement is due after so many messages or bytes",
          "[runtime][transport][stream]") {
  StreamReceiver receiver;
  const int connection = 0;
  REQUIRE(receiver.start(&connection, {.number = 1, .from = 1}));
  CHECK(!receiver.owes());
  for (std::uint64_t i = 1; i < StreamReceiver::kAckMessages; ++i)
    REQUIRE(receiver.receive(&connection, 8));
  CHECK(receiver.owes());
  CHECK(!receiver.ack_is_due());
  REQUIRE(receiver.receive(&connection, 8));
  CHECK(receiver.ack_is_due());
  CHECK(receiver.acknowledge() == StreamReceiver::kAckMessages);
  CHECK(!receiver.owes());
  REQUIRE(receiver.receive(&connection, StreamReceiver::kAckBytes));
  CHECK(receiver.ack_is_due());
}

TEST_CASE("a connection that its sender has left is not heard any more",
          "[runtime][transport][stream]") {
  StreamReceiver receiver;
  const int first = 0;
  const int second = 0;
  REQUIRE(receiver.start(&first, {.number = 1, .from = 1}));
  REQUIRE(receiver.receive(&first, 8));
  REQUIRE(receiver.start(&second, {.number = 2, .from = 1}));
  CHECK(!receiver.receive(&first, 8));
  CHECK(!receiver.receive(&second, 8));  // it has arrived through the first
  CHECK(receiver.receive(&second, 8));
  CHECK(receiver.start(&first, {.number = 1, .from = 1}));
  CHECK(receiver.receive(&second, 8));
  CHECK(receiver.acknowledge() == 3);
}

TEST_CASE("what no sender or receiver can have counted is not believed",
          "[runtime][transport][stream]") {
  StreamReceiver receiver;
  const int connection = 0;
  CHECK(!receiver.start(&connection, {.number = 1, .from = 2}));
  CHECK(!receiver.start(&connection, {.number = 1, .from = 0}));
  StreamSender sender;
  sender.push(message("one"));
  CHECK(!sender.acknowledged(1));  // no connection was handed it
  sender.start();
  REQUIRE(sender.next());
  CHECK(!sender.acknowledged(2));
  CHECK(sender.acknowledged(1));
  CHECK(sender.empty());
}

TEST_CASE("no more than a window is handed to one connection", "[runtime][transport][stream]") {
  StreamSender sender;
  const std::string large(200 << 20, 'x');
  for (int i = 0; i < 4; ++i) sender.push(message(large, static_cast<std::uint64_t>(i + 1)));
  sender.start();
  CHECK(sender.next());
  CHECK(sender.next());
  CHECK(!sender.next());
  CHECK(sender.last_request_handed() == 2);
  CHECK(sender.acknowledged(1));
  CHECK(sender.next());
  CHECK(!sender.next());
}

TEST_CASE(
    "a sender knows which of its replies have arrived, also where another message stands in for "
    "one",
    "[runtime][transport][stream]") {
  StreamSender sender;
  sender.push(message("a call", 1));
  sender.push(KeptMessage(text_message("a reply"), 0, 7));
  sender.push(KeptMessage(text_message("a reply"), 0, 9));
  sender.start();
  while (sender.next()) {
  }
  CHECK(sender.acknowledged(1));
  CHECK(sender.last_reply_arrived() == 0);
  CHECK(sender.acknowledged(2));
  CHECK(sender.last_reply_arrived() == 7);
  sender.replace(sender.kept().front(), KeptMessage(text_message("given up"), 0, 9));
  CHECK(sender.acknowledged(3));
  CHECK(sender.last_reply_arrived() == 9);
}
