#include <memory>
#include <mutex>
#include <thread>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../support/id_literals.hpp"
#include "child_process.hpp"
#include "guard.hpp"
#include "harness.hpp"
#include "transfer/chunks.hpp"
#include "transport/socket/resolve.hpp"
#include "transport/socket/socket.hpp"

using namespace troupe;
using namespace troupe::transfer;
using namespace troupe::transfer::test;
using Catch::Matchers::Contains;
using Kind = store::Refusal::Kind;
using troupe::test::ChildProcess;
using troupe::test::kGuard;

namespace {

NodeOptions impatient(std::chrono::milliseconds silence) {
  NodeOptions options;
  options.exchange.pull.connect = kGuard;
  options.exchange.pull.silence = silence;
  options.exchange.pull.stall = 2 * silence;
  options.exchange.pull.pause = 10ms;
  options.exchange.sending.silence = silence;
  return options;
}

/// No wait of its own ends before the test does: what happens decides.
NodeOptions patient() {
  auto options = impatient(10min);
  options.exchange.pull.unreachable = 10min;
  return options;
}

/// What it is refused with; and then nothing is left of it.
store::Refusal refused(Node& here, ObjectId object, std::uint64_t bytes, const NodeAddress& at) {
  const auto before = here.statistics();
  const auto answer = here.get(20_process, object, bytes, at);
  REQUIRE(answer.refusal);
  CHECK(is_at_rest(here, before));
  return *answer.refusal;
}

std::string text(transport::Outgoing message) {
  std::vector<char> bytes;
  message.append_to(bytes);
  return {bytes.begin(), bytes.end()};
}

std::string announced_chunk(std::uint64_t offset, std::uint64_t bytes) {
  const std::vector<std::byte> value(bytes);
  const auto header = chunk_header(offset, value);
  return std::string(header.data(), header.size()) + std::string(bytes, '\0');
}

/// Numbers from one process to another.
class Pipe {
 public:
  Pipe() { REQUIRE(::pipe(ends_) == 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void write(std::uint16_t number) const {
    if (::write(ends_[1], &number, sizeof number) != sizeof number) ::_exit(1);
  }
  /// 0: none has come.
  std::uint16_t read() const {
    pollfd ready{.fd = ends_[0], .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, std::chrono::milliseconds(3 * kGuard).count()) != 1) return 0;
    std::uint16_t number = 0;
    return ::read(ends_[0], &number, sizeof number) == sizeof number ? number : 0;
  }

 private:
  int ends_[2];
};

/// A node in a process of its own, with one object.
class NodeProcess {
 public:
  explicit NodeProcess(std::uint64_t bytes, const NodeOptions& options = {})
      : process_([&]() -> int {
          Node node(1_node, options);
          node.attach(10_process);
          node.put(10_process, bytes);
          line_.write(node.address().port);
          for (;;) ::pause();
        }) {
    address.port = line_.read();
    REQUIRE(address.port != 0);
  }
  void kill() { process_.kill(); }
  const ChildProcess& process() const { return process_; }
  NodeAddress address{.node = 1_node, .host = "127.0.0.1", .port = 0};

 private:
  Pipe line_;
  ChildProcess process_;
};

/// For a proxy: after 4 MiB it takes nothing, until the socket is full and while `process` stands
/// still for 5 s; then all goes through at once.
Proxy::OnBytes hold_while_standing_still(const ChildProcess& process) {
  return [&process, once = std::make_shared<std::once_flag>()](int, std::uint64_t offset,
                                                               std::span<char>) {
    if (offset > 4 * kMiB) {
      std::call_once(*once, [&] {
        std::this_thread::sleep_for(200ms);
        process.stand_still(5s);
      });
    }
    return true;
  };
}

}  // namespace

TEST_CASE("a node that was killed while it sent is told as gone", "[transfer][failure]") {
  NodeProcess origin(64 * kMiB);
  Node here(2_node, patient());
  here.attach(20_process);
  const Proxy slow(origin.address, [&](int, std::uint64_t offset, std::span<char>) {
    if (offset > 8 * kMiB) origin.kill();
    return true;
  });
  const auto refusal = refused(here, {10_process, 1}, 64 * kMiB, slow.address());
  CHECK(refusal.kind == Kind::Unknown);
  CHECK_THAT(refusal.message, Contains("object 10.1 (64.0 MiB, of which ") &&
                                  Contains("0 MiB have arrived)") &&
                                  Contains("the node that had it is gone"));
  const auto direct = refused(here, {10_process, 1}, 64 * kMiB, origin.address);
  CHECK(direct.kind == Kind::Unknown);
  CHECK_THAT(direct.message, Contains("the node that had it is gone"));
}

TEST_CASE("bytes that were changed on their way are sent again", "[transfer][failure]") {
  Node origin(1_node), here(2_node, patient());
  origin.attach(10_process);
  here.attach(20_process);
  const auto object = origin.put(10_process, 8 * kMiB);
  const Proxy flips(origin.address(),
                    [](int connection, std::uint64_t offset, std::span<char> bytes) {
                      const auto at = 5 * kMiB;
                      if (connection == 1 && offset <= at && at < offset + bytes.size())
                        bytes[at - offset] ^= 1;
                      return true;
                    });
  CHECK(here.has(20_process, here.get(20_process, object, 8 * kMiB, flips.address()), object));
  CHECK(flips.connections() == 2);
  CHECK(flips.came_back() < 13 * kMiB);
}

TEST_CASE("bytes that are changed each time are refused, with both checksums",
          "[transfer][failure]") {
  Node origin(1_node), here(2_node, patient());
  origin.attach(10_process);
  here.attach(20_process);
  const auto object = origin.put(10_process, 3 * kMiB);
  const auto before = origin.statistics();
  const Proxy flips(origin.address(), [](int, std::uint64_t offset, std::span<char> bytes) {
    if (offset > 1000) bytes[bytes.size() / 2] ^= 1;
    return true;
  });
  const auto refusal = refused(here, object, 3 * kMiB, flips.address());
  CHECK(refusal.kind == Kind::Damaged);
  CHECK_THAT(refusal.message,
             Contains("4 attempts failed") && Contains("the XXH3 of the 1.0 MiB at"));
  CHECK(flips.connections() == 4);
  CHECK(is_at_rest(origin, before));
}

TEST_CASE("a connection that breaks is made again, and the rest is sent", "[transfer][failure]") {
  Node origin(1_node), here(2_node, patient());
  origin.attach(10_process);
  here.attach(20_process);
  const auto object = origin.put(10_process, 16 * kMiB);
  const Proxy cuts(origin.address(), [](int connection, std::uint64_t offset, std::span<char>) {
    return connection > 3 || offset < 4 * kMiB;
  });
  CHECK(here.has(20_process, here.get(20_process, object, 16 * kMiB, cuts.address()), object));
  CHECK(cuts.connections() == 4);
}

TEST_CASE("who says nothing is not waited for", "[transfer][failure]") {
  Node here(2_node, impatient(300ms));
  here.attach(20_process);
  const FakeNode silent([](wire::TransferRequest::Reader) { return std::string(); });
  const auto refusal = refused(here, {10_process, 1}, kMiB, silent.address());
  CHECK(refusal.kind == Kind::TimedOut);
  CHECK_THAT(refusal.message, Contains("nothing came for 300 ms"));
  CHECK(eventually([&] { return silent.requests() >= 4; }));
  CHECK(silent.requests() == 4);
}

TEST_CASE("who sends garbage is told by name, and nothing is left of it", "[transfer][failure]") {
  Node here(2_node, patient());
  here.attach(20_process);
  transport::Outgoing nonsense;
  nonsense.root().setHeartbeat(1);
  transport::Outgoing in_circles;
  auto onward = in_circles.root().initTransferSentOn();
  onward.setHost("127.0.0.1");
  onward.setPort(1);
  onward.setNode(77);
  const auto circle = text(std::move(in_circles));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"HTTP/1.1 400 Bad Request\r\n\r\n", "'HTTP' is the start of neither"},
      {announced_chunk(0, 100) + announced_chunk(50, 100), "a chunk of 100 bytes at"},
      {announced_chunk(0, 5000), "a chunk of 5000 bytes at 0 is announced, where 4000 bytes"},
      {text(std::move(nonsense)), "a message that is no answer"},
      {std::string("TRP1\x08\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16), "a malformed message"},
      {circle, "it was sent on"},
  };
  for (const auto& [bytes, why] : cases) {
    INFO(why);
    const FakeNode fake([bytes = bytes](wire::TransferRequest::Reader) { return bytes; });
    const auto refusal = refused(here, {10_process, 1}, 4000, fake.address());
    CHECK((refusal.kind == Kind::Damaged || refusal.kind == Kind::Stopped));
    CHECK_THAT(refusal.message, Contains(why) && Contains("object 10.1"));
  }
}

TEST_CASE("a node of another cluster is not asked, and is asked for nothing",
          "[transfer][failure]") {
  transport::Secret other{};
  Node origin(1_node, {.key = other}), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  const auto object = origin.put(10_process, kMiB);
  const auto refusal = refused(here, object, kMiB, origin.address());
  CHECK(refusal.kind == Kind::Stopped);
  CHECK_THAT(refusal.message, Contains("token"));
  CHECK(origin.statistics().pinned_bytes == 0);
}

TEST_CASE("an object of another size than was said is refused", "[transfer][failure]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  const auto object = origin.put(10_process, kMiB);
  const auto before = origin.statistics();
  const auto refusal = refused(here, object, 2 * kMiB, origin.address());
  CHECK(refusal.kind == Kind::Invalid);
  CHECK_THAT(refusal.message, Contains("has 1048576 bytes, and 2097152 were asked for"));
  CHECK(is_at_rest(origin, before));
}

TEST_CASE("a receiver that takes nothing does not hold the object for ever",
          "[transfer][failure]") {
  Node origin(1_node, impatient(300ms));
  origin.attach(10_process);
  const auto object = origin.put(10_process, 64 * kMiB);
  const auto before = origin.statistics();
  boost::asio::io_context loop;
  os::UniqueFd lazy;
  transport::connect(
      loop, {.host = "127.0.0.1", .port = origin.address().port, .unix_name = {}},
      {.self = {.role = wire::Role::NODE, .cluster = kCluster}, .key = token(), .timeout = kGuard},
      [&](const transport::ConnectionPtr& connection, const transport::Accepted&) {
        transport::Outgoing message;
        auto request = message.root().initTransferRequest();
        request.initObject().setProcess(object.process.value());
        request.getObject().setNumber(object.number);
        request.setJob(kJob.value());
        request.setBytes(64 * kMiB);
        connection->send(std::move(message));
        lazy = connection->detach();
      },
      [](const transport::Denied& denied) { FAIL(denied.why); });
  loop.run();
  REQUIRE(lazy);
  // That it holds the object is seen by what it sends, however late one looks.
  CHECK(eventually([&] {
    int came = 0;
    return ::ioctl(lazy.get(), FIONREAD, &came) == 0 && came > 64 << 10;
  }));
  CHECK(is_at_rest(origin, before));
}

TEST_CASE("while a node stands still its receivers are not silent",
          "[transfer][failure][silence]") {
  NodeProcess origin(64 * kMiB, impatient(2s));
  Node here(2_node, patient());
  here.attach(20_process);
  const Proxy proxy(origin.address, hold_while_standing_still(origin.process()));
  const ObjectId object{10_process, 1};
  CHECK(here.has(20_process, here.get(20_process, object, 64 * kMiB, proxy.address()), object));
  CHECK(proxy.connections() == 1);
}

TEST_CASE("while a node stands still nobody is silent to it", "[transfer][failure][silence]") {
  const Pipe port, has_it;
  ChildProcess receiver([&]() -> int {
    Node here(2_node, impatient(2s));
    here.attach(20_process);
    const ObjectId object{10_process, 1};
    const NodeAddress proxy{.node = 1_node, .host = "127.0.0.1", .port = port.read()};
    has_it.write(here.has(20_process, here.get(20_process, object, 64 * kMiB, proxy), object));
    for (;;) ::pause();
  });
  Node origin(1_node, patient());
  origin.attach(10_process);
  origin.put(10_process, 64 * kMiB);
  const Proxy proxy(origin.address(), hold_while_standing_still(receiver));
  port.write(proxy.address().port);
  CHECK(has_it.read() == 1);
  CHECK(proxy.connections() == 1);
}

TEST_CASE("who asks for what cannot be is refused, and the node lives", "[transfer][failure]") {
  Node origin(1_node);
  origin.attach(10_process);
  const auto object = origin.put(10_process, kMiB);
  const auto before = origin.statistics();
  const auto pull = [&](ObjectId wanted, store::JobId job, wire::Role role, transport::Secret key) {
    boost::asio::io_context loop;
    std::vector<std::byte> memory(kMiB);
    PullOptions options;
    options.self = {.role = role, .cluster = kCluster, .job = 5_job};
    options.key = key;
    options.pause = 1ms;
    std::optional<store::Refusal> why;
    std::make_shared<Pull>(loop, Pull::Wanted{wanted, job, origin.address()}, memory, options,
                           nullptr,
                           [&](std::optional<store::Refusal> refusal) { why = std::move(refusal); })
        ->start();
    loop.run();
    REQUIRE(why);
    return *why;
  };
  CHECK(pull({10_process, 0}, kJob, wire::Role::NODE, token()).kind == Kind::Unknown);
  CHECK(pull({11_process, 1}, kJob, wire::Role::NODE, token()).kind == Kind::Unknown);
  CHECK(pull(object, 77_job, wire::Role::NODE, token()).kind == Kind::Unknown);
  CHECK_THAT(pull(object, kJob, wire::Role::PROCESS, token()).message,
             Contains("the process is of job 5, not of job 1"));
  CHECK(is_at_rest(origin, before));
}
