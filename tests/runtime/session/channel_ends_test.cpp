// Both ends of a channel in one process, where each step of either can be put before or after the
// other's.
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "calls/channel/in_channel.hpp"
#include "calls/channel/out_channel.hpp"
#include "objects/doorbell.hpp"

using namespace troupe;
using namespace troupe::runtime;

namespace {

/// Counts how calls end.
struct Receiver : CallReceiver {
  void answered(PendingCall, Outcome outcome, std::chrono::nanoseconds) override {
    ++(std::holds_alternative<Failure>(outcome) ? cancelled : values);
  }
  void lost(PendingCall, Progress progress, const Failure&) override { ends.push_back(progress); }
  int values = 0;
  int cancelled = 0;
  std::vector<Progress> ends;
};

struct Ends {
  Receiver receiver;
  os::UniqueFd loop{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::shared_ptr<OutChannel> out;
  std::unique_ptr<InChannel> in;

  Ends() {
    auto caller = ring::Segment::create();
    REQUIRE(caller);
    auto callee = ring::Segment::adopt(caller->descriptor());
    REQUIRE(std::holds_alternative<ring::Segment>(callee));
    in = std::make_unique<InChannel>(
        InChannel::Callbacks{.caller = 1_process,
                             .segment = std::move(std::get<ring::Segment>(callee)),
                             .caller_bell = bell(),
                             .caller_loop = os::UniqueFd(::fcntl(loop.get(), F_DUPFD_CLOEXEC, 0)),
                             .send_through_socket = {}});
    out = std::make_shared<OutChannel>(2_process, std::move(*caller), bell());
  }
  static std::unique_ptr<ring::Bell> bell() {
    return ring::Bell::adopt(
        os::UniqueFd(::fcntl(doorbell().descriptor().get(), F_DUPFD_CLOEXEC, 0)));
  }
  std::uint64_t call(std::size_t bytes) {
    const std::vector<detail::Argument> arguments{
        detail::Payload{.bytes = std::string(bytes, 'x'), .refs = {}}};
    PendingCall direct{.receiver = &receiver, .label = "call"};
    const auto id = out->send(Work::Kind::Method, {}, arguments, direct);
    REQUIRE(id);
    return *id;
  }
  bool loop_is_told() const {
    pollfd look{.fd = loop.get(), .events = POLLIN, .revents = 0};
    return ::poll(&look, 1, 0) == 1;
  }
  /// As the caller's loop does once it is told.
  void turn() {
    std::uint64_t times = 0;
    [[maybe_unused]] const auto got = ::read(loop.get(), &times, sizeof times);
    out->loop_turn();
  }
};

}  // namespace

TEST_CASE("a call that found no room is sent once those before it were passed over",
          "[runtime][session][channel]") {
  Ends ends;
  const auto busy = ends.call(8);
  std::vector<std::uint64_t> fillers;
  for (int i = 0; i < 2; ++i) fillers.push_back(ends.call(100'000));
  ends.call(100'000);  // no room for this one
  const auto runs = ends.in->front();
  REQUIRE(runs);
  CHECK(runs->head.id == busy);
  ends.in->pop();
  for (const auto filler : fillers) ends.out->cancel(filler);
  CHECK(ends.receiver.cancelled == 2);
  ends.in->reply(busy, detail::Payload{}, {});
  // The caller takes the reply before the callee has passed over what was cancelled.
  ends.turn();
  REQUIRE(ends.receiver.values == 1);
  CHECK(!ends.in->front());
  CHECK(ends.loop_is_told());
  ends.turn();
  CHECK(ends.in->front());
}

TEST_CASE("what a callee began and finished is known after its end from the ring's own memory",
          "[runtime][session][channel]") {
  Ends ends;
  for (int i = 0; i < 4; ++i) ends.call(8);
  for (int i = 0; i < 3; ++i) {
    const auto next = ends.in->front();
    REQUIRE(next);
    ends.in->pop();
    if (i < 2) next->mark.begin();
    if (i < 1) next->mark.finish();
  }
  ends.out->close(Failure{.kind = Failure::Kind::ProcessDied}, true);
  CHECK(ends.receiver.ends == std::vector{Progress::Finished, Progress::UnderWay,
                                          Progress::NotBegun, Progress::NotBegun});
}
