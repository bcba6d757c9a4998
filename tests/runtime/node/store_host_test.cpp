#include "node/store_host.hpp"

#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "guard.hpp"
#include "os/machine.hpp"
#include "store/codec.hpp"
#include "waiting.hpp"

namespace troupe::node {
namespace {

using test::run_until;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct World {
  boost::asio::io_context loop;
  transport::Secret token{};
  std::optional<StoreHost> host;

  World() {
    token.fill(7);
    store::ServiceOptions options;
    options.cap_bytes = 64 * kMiB;
    options.spill_bytes = 0;
    host.emplace(StoreHost::Callbacks{.loop = loop,
                                      .options = options,
                                      .token = token,
                                      .cluster = "c",
                                      .host = "127.0.0.1",
                                      .machine = os::machine_id(),
                                      .to_head = [](transport::Outgoing&) {}});
  }
};

/// A driver of this machine, as far as it says so.
struct Driver {
  Driver(World& in, ProcessId process, JobId job) : world(in) {
    transport::ClientOptions options;
    options.self = {.role = wire::Role::PROCESS, .cluster = "c", .job = job, .process = process};
    options.key = transport::job_key(world.token, job);
    options.timeout = troupe::test::kGuard;
    transport::connect(
        world.loop, {.host = {}, .port = 0, .unix_name = world.host->address().unix_name}, options,
        [this](transport::ConnectionPtr open, const transport::Accepted&) {
          link = std::move(open);
          link->hand_over(
              {}, [this](wire::Message::Reader message) { on_message(message); },
              [this](const std::string&) { closed = true; });
        },
        [](const transport::Denied& denied) { FAIL(denied.why); });
    run_until(world.loop, "a driver to connect", [this] { return link != nullptr; });
  }
  ~Driver() {
    if (link) link->close();
  }

  void on_message(wire::Message::Reader message) {
    if (message.isObjectAttached()) {
      failure = message.getObjectAttached().getFailure();
      arenas += link->take_descriptors().size();
    }
    if (message.isObjectCreated()) ++created;
  }
  /// -> why not; empty: it has its arena.
  std::string attach() {
    transport::Outgoing message;
    message.root().setObjectAttach();
    link->send(message);
    failure.reset();
    run_until(world.loop, "an answer", [this] { return failure || closed; });
    return failure.value_or("closed");
  }
  void create(ProcessId process, std::uint64_t number) {
    transport::Outgoing message;
    auto create = message.root().initObjectCreate();
    create.setRequest(number);
    store::write_object(create.initObject(), {process, number});
    create.setOwner(process.value());
    create.setBytes(kMiB);
    link->send(message);
  }

  World& world;
  transport::ConnectionPtr link;
  std::optional<std::string> failure;
  std::size_t arenas = 0;
  int created = 0;
  bool closed = false;
};

}  // namespace

TEST_CASE("a driver may ask for its arena again, and again after its socket broke",
          "[node][store]") {
  World world;
  Driver first(world, 7_process, 1_job);
  CHECK(first.attach().empty());
  CHECK(first.attach().empty());
  CHECK(first.arenas == 2);
  first.create(7_process, 1);
  run_until(world.loop, "an object", [&] { return first.created == 1; });

  Driver second(world, 7_process, 1_job);  // whose first socket broke, which the node has not seen
  CHECK(second.attach().empty());
  run_until(world.loop, "the first to be closed", [&] { return first.closed; });
  CHECK(world.host->statistics()->objects == 0);  // what it had not sealed
  second.create(7_process, 2);
  run_until(world.loop, "an object", [&] { return second.created == 1; });
}

TEST_CASE(
    "a driver gets nothing under the number of another job's process, of a worker process, or none",
    "[node][store]") {
  World world;
  Driver honest(world, 7_process, 1_job);
  REQUIRE(honest.attach().empty());
  const auto refused = [&](ProcessId process, JobId job) {
    Driver other(world, process, job);
    const auto why = other.attach();
    other.create(process, 99);
    honest.create(7_process, 1 + static_cast<std::uint64_t>(honest.created));
    const int before = honest.created;
    run_until(world.loop, "the honest one's object", [&] { return honest.created == before + 1; });
    CHECK(other.arenas == 0);
    CHECK(other.created == 0);
    return why;
  };
  CHECK_THAT(refused(7_process, 2_job), Catch::Contains("process 7 is another one, of job 1"));
  CHECK_THAT(refused({}, 2_job), Catch::Contains("not the number of a process"));
  CHECK_THAT(refused(store::Catalog::node_of(1_job), 2_job),
             Catch::Contains("is another one") || Catch::Contains("not the number of a process"));
}

TEST_CASE("what is asked of the store before it was attached to is not heard", "[node][store]") {
  World world;
  Driver early(world, 7_process, 1_job);
  early.create(7_process, 1);
  CHECK(early.attach().empty());
  CHECK(world.host->statistics()->objects == 0);
  CHECK(early.created == 0);
}

}  // namespace troupe::node
