// A line between two ends whose connections are cut at any byte, as seen by either end first. Each
// random sequence is told by its seed.
#include "transport/stream/resumable_line.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "os/unique_fd.hpp"
#include "transport/harness.hpp"

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::test;

namespace {

/// One end of a line, and what it has seen.
struct LineEnd {
  LinePtr line;
  std::vector<std::string> sent, delivered;
  std::size_t beats = 0;
  bool broken = false;

  void start(Socket socket, bool keeps = true) {
    line = ResumableLine::make(Connection::make(std::move(socket)));
    line->start(
        [this](wire::Message::Reader message) {
          if (message.isHeartbeat()) ++beats;
          if (message.isShutdown()) delivered.emplace_back(message.getShutdown().cStr());
        },
        [this](const std::string&) { broken = true; });
    if (keeps) line->keep();
  }
  void send(const std::string& text) {
    sent.push_back(text);
    auto out = text_message(text);
    line->send(out);
  }
  void beat() const {
    Outgoing out;
    out.root().setHeartbeat(1);
    line->send(out);
  }
  void resume(Socket socket, std::uint64_t arrived) {
    broken = false;
    REQUIRE(line->is_resumable_from(arrived));
    line->resume(Connection::make(std::move(socket)), arrived);
  }
};

/// A network between the two: passes on as many bytes as it is told to, and loses those under way
/// where it is cut. Of a cut both ends hear, or one does and the other is half-open.
struct Network {
  os::UniqueFd first, second;

  static std::pair<Socket, os::UniqueFd> end(Loop& loop) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return {adopted(loop.context, AF_UNIX, OwnedFd(ends[0])), os::UniqueFd(ends[1])};
  }
  bool pass(bool forth, std::size_t most) const {
    std::vector<char> bytes(most);
    const auto got =
        ::recv((forth ? first : second).get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return false;
    return ::send((forth ? second : first).get(), bytes.data(), static_cast<std::size_t>(got),
                  MSG_NOSIGNAL) == got;
  }
};

/// The first end dials, as a node does; the second answers, as its head does.
class LineWorld {
 public:
  explicit LineWorld(unsigned seed) : random_(seed) {
    auto [socket, raw] = Network::end(loop_);
    auto [other_socket, other_raw] = Network::end(loop_);
    network_ = {std::move(raw), std::move(other_raw)};
    first.start(std::move(socket));
    second.start(std::move(other_socket));
  }
  ~LineWorld() {
    first.line->close();
    second.line->close();
  }

  void random_event() {
    switch (random_() % 10) {
      case 0:
        return send(first);
      case 1:
        return send(second);
      case 2:
        return (random_() % 2 == 0 ? first : second).beat();
      case 3:
        if (random_() % 4 == 0) cut();
        return;
      case 4:
        return connect(random_() % 4 != 0);
      case 5:
        return run();
      default:
        network_.pass(random_() % 2 == 0, 1 + random_() % (1 << random_() % 17));
        run();
    }
  }
  void settle() {
    run();
    if (first.broken || second.broken) {
      network_.first.reset();
      REQUIRE(loop_.until([this] { return first.broken; }));
      connect(true);
    }
    carry_until([this] {
      return first.delivered.size() >= second.sent.size() &&
             second.delivered.size() >= first.sent.size();
    });
    first.beat();
    second.beat();
    carry_until(
        [this] { return first.line->queued_bytes() == 0 && second.line->queued_bytes() == 0; });
  }
  void check() const {
    REQUIRE(is_prefix(first.delivered, second.sent));
    REQUIRE(is_prefix(second.delivered, first.sent));
  }

  LineEnd first, second;
  int cuts = 0;

 private:
  static bool is_prefix(const std::vector<std::string>& part, const std::vector<std::string>& all) {
    return part.size() <= all.size() && std::equal(part.begin(), part.end(), all.begin());
  }
  void run() {
    loop_.context.restart();
    loop_.context.poll();
  }
  void carry_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + troupe::test::kGuard;
    while (!done()) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      network_.pass(true, 1 << 14);
      network_.pass(false, 1 << 14);
      run();
    }
  }
  void send(LineEnd& from) {
    auto text = std::to_string(from.sent.size());
    if (random_() % 16 == 0) text += std::string(40'000, ' ');
    from.send(text);
  }
  void cut() {
    if (first.broken) return;
    ++cuts;
    network_.first.reset();
    if (random_() % 2 == 0) network_.second.reset();
    REQUIRE(loop_.until([this] { return first.broken; }));
  }
  /// `whole`: else the answer is lost with the connection.
  void connect(bool whole) {
    first.line->leave_connection();
    first.broken = true;
    auto [socket, raw] = Network::end(loop_);
    auto [other_socket, other_raw] = Network::end(loop_);
    const auto first_had = first.line->received();
    if (random_() % 2 == 0) run();
    const auto second_had = second.line->received();
    second.resume(std::move(other_socket), first_had);
    if (!whole) {
      network_.second.reset();
      if (random_() % 2 == 0) network_.second = std::move(other_raw);
      return;
    }
    first.resume(std::move(socket), second_had);
    network_ = {std::move(raw), std::move(other_raw)};
  }

  std::mt19937 random_;
  Loop loop_;
  Network network_;
};

}  // namespace

TEST_CASE(
    "invariants 1, 2 and 4 of a line: each message once and in order, however often it breaks",
    "[runtime][transport][line][property]") {
  int cuts = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    LineWorld world(seed);
    for (int i = 0; i < 400; ++i) {
      world.random_event();
      world.check();
    }
    world.settle();
    REQUIRE(world.first.delivered == world.second.sent);
    REQUIRE(world.second.delivered == world.first.sent);
    cuts += world.cuts;
  }
  CHECK(cuts > 1000);
}

namespace {

/// Two ends, joined at once.
struct TwoEnds {
  Loop loop;
  LineEnd first, second;

  explicit TwoEnds(bool keep = true) {
    auto [one, other] = socket_pair(loop, false);
    first.start(std::move(one), keep);
    second.start(std::move(other), keep);
  }
  ~TwoEnds() {
    first.line->close();
    second.line->close();
  }
  void join() {
    auto [one, other] = socket_pair(loop, false);
    const auto first_had = first.line->received();
    const auto second_had = second.line->received();
    second.resume(std::move(other), first_had);
    first.resume(std::move(one), second_had);
  }
};

}  // namespace

TEST_CASE("invariant 3 of a line: a connection that was replaced is not heard, nor its end",
          "[runtime][transport][line]") {
  TwoEnds ends;
  ends.first.send("one");
  REQUIRE(ends.loop.until([&] { return ends.second.delivered.size() == 1; }));
  const auto before = ends.first.line->connection();
  const auto other_before = ends.second.line->connection();
  before->send(text_message("too late"));
  ends.join();
  CHECK_FALSE(before->is_open());
  CHECK_FALSE(other_before->is_open());
  ends.first.send("two");
  REQUIRE(ends.loop.until([&] { return ends.second.delivered.size() == 2; }));
  CHECK(ends.second.delivered == std::vector<std::string>{"one", "two"});
  CHECK_FALSE(ends.first.broken);
  CHECK_FALSE(ends.second.broken);
}

TEST_CASE("what waits in a broken line counts as queued, and heartbeats do not wait",
          "[runtime][transport][line]") {
  TwoEnds ends;
  ends.second.line->connection()->close();
  REQUIRE(ends.loop.until([&] { return ends.first.broken; }));
  CHECK(ends.first.line->connection() == nullptr);
  ends.first.send(std::string(100'000, 'x'));
  ends.first.beat();
  CHECK(ends.first.line->queued_bytes() >= 100'000);
  ends.join();
  REQUIRE(ends.loop.until([&] { return ends.second.delivered.size() == 1; }));
  CHECK(ends.second.beats == 0);
  CHECK(ends.first.line->queued_bytes() >= 100'000);
  ends.second.beat();
  REQUIRE(ends.loop.until([&] { return ends.first.line->queued_bytes() == 0; }));
  CHECK(ends.first.beats == 1);
}

TEST_CASE("a line that keeps nothing ends with its connection", "[runtime][transport][line]") {
  TwoEnds ends(false);
  ends.first.send("one");
  REQUIRE(ends.loop.until([&] { return ends.second.delivered.size() == 1; }));
  CHECK(ends.first.line->queued_bytes() == 0);
  ends.second.line->close();
  REQUIRE(ends.loop.until([&] { return ends.first.broken; }));
  CHECK_FALSE(ends.first.line->is_resumable());
  ends.first.send("two");
  CHECK(ends.first.line->queued_bytes() == 0);
}

TEST_CASE("a line is resumed neither from messages that were not sent nor from acknowledged ones",
          "[runtime][transport][line]") {
  TwoEnds ends;
  ends.first.send("one");
  CHECK_FALSE(ends.first.line->is_resumable_from(2));
  REQUIRE(ends.loop.until([&] { return ends.second.delivered.size() == 1; }));
  CHECK(ends.first.line->is_resumable_from(0));
  CHECK(ends.first.line->is_resumable_from(1));
  ends.second.beat();
  REQUIRE(ends.loop.until(
      [&] { return ends.first.beats == 1 && ends.first.line->queued_bytes() == 0; }));
  CHECK_FALSE(ends.first.line->is_resumable_from(0));
  ends.first.line->finish();
  CHECK_FALSE(ends.first.line->is_resumable());
  CHECK_FALSE(ends.first.broken);
  REQUIRE(ends.loop.until([&] { return ends.second.broken; }));
}

TEST_CASE("a message above the limit of a frame ends the line, with the reason",
          "[runtime][transport][line]") {
  TwoEnds ends;
  std::optional<std::string> why;
  ends.first.line->start([](wire::Message::Reader) {},
                         [&](const std::string& what) { why = what; });
  auto out = text_message(std::string(Limits{}.frame_bytes, 'x'));
  ends.first.line->send(out);
  CHECK_FALSE(why);
  REQUIRE(ends.loop.until([&] { return why.has_value(); }));
  CHECK_THAT(*why, Catch::Contains("the limit is 268435456"));
  CHECK_FALSE(ends.first.line->is_resumable());
}
