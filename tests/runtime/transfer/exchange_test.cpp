#include <thread>

#include "../../support/id_literals.hpp"
#include "harness.hpp"
#include "store/files.hpp"
#include "transfer/pull.hpp"

using namespace troupe;
using namespace troupe::transfer;
using namespace troupe::transfer::test;
using Kind = store::Refusal::Kind;

TEST_CASE("what was written on another node is read as if it had been written here",
          "[transfer][exchange]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  const auto sizes = {std::uint64_t{0},
                      std::uint64_t{1},
                      std::uint64_t{4095},
                      std::uint64_t{4096},
                      std::uint64_t{4097},
                      kMiB - 1,
                      kMiB,
                      kMiB + 1,
                      3 * kMiB + 7,
                      16 * kMiB};
  for (const auto bytes : sizes) {
    INFO(bytes << " bytes");
    const auto object = origin.put(10_process, bytes);
    const auto answer = here.get(20_process, object, bytes, origin.address());
    CHECK(here.has(20_process, answer, object));
    CHECK(answer.bytes == bytes);
  }
  CHECK(origin.accepted() == static_cast<int>(sizes.size()));
  CHECK(eventually([&] { return origin.sending() == 0; }));
  CHECK(eventually([&] { return origin.statistics().pinned_bytes == 0; }));
}

TEST_CASE("however many processes ask, an object is brought once, and then nobody is asked",
          "[transfer][exchange]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process);
  for (ProcessId process = 20_process; process < 24_process; ++process) here.attach(process);
  const auto object = origin.put(10_process, 8 * kMiB);
  const Proxy slow(origin.address(), slowly(40 * kMiB));
  std::vector<std::future<Answer>> answers;
  for (int round = 0; round < 3; ++round) {
    for (ProcessId process = 20_process; process < 24_process; ++process) {
      answers.push_back(here.ask(process, object, 8 * kMiB, slow.address()));
    }
  }
  for (auto& answer : answers) CHECK(here.has(20_process, answer.get(), object));
  CHECK(slow.connections() == 1);
  origin.kill();
  CHECK(here.has(21_process, here.get(21_process, object, 8 * kMiB, slow.address()), object));
}

TEST_CASE("a get that comes before the object is sealed waits for it, on another node too",
          "[transfer][exchange]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  auto early = here.ask(20_process, {10_process, 1}, 5'000, origin.address());
  CHECK(eventually([&] { return origin.sending() == 1; }));
  CHECK(origin.put(10_process, 5'000) == ObjectId{10_process, 1});
  CHECK(here.has(20_process, early.get(), {10_process, 1}));
}

TEST_CASE("an object that lies on its node's disk is brought back and sent",
          "[transfer][exchange]") {
  const store::test::TemporaryDirectory disk;
  Node origin(1_node, {.cap_bytes = 16 * kMiB, .spill_directory = disk.path}), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  std::vector<ObjectId> objects;
  for (int i = 0; i < 4; ++i) objects.push_back(origin.put(10_process, 6 * kMiB));
  REQUIRE(eventually([&] { return origin.statistics().spilled >= 2; }));
  for (const auto& object : objects) {
    CHECK(here.has(20_process, here.get(20_process, object, 6 * kMiB, origin.address()), object));
  }
  CHECK(origin.statistics().restored >= 2);
}

TEST_CASE("a copy makes room for others, and is brought again", "[transfer][exchange]") {
  const store::test::TemporaryDirectory disk;
  Node origin(1_node), here(2_node, {.cap_bytes = 16 * kMiB, .spill_directory = disk.path});
  origin.attach(10_process);
  here.attach(20_process);
  std::vector<ObjectId> objects;
  for (int i = 0; i < 5; ++i) objects.push_back(origin.put(10_process, 6 * kMiB));
  for (int round = 0; round < 2; ++round) {
    for (const auto& object : objects) {
      CHECK(here.has(20_process, here.get(20_process, object, 6 * kMiB, origin.address()), object));
      here.unpin(20_process, object);
    }
  }
  CHECK(here.statistics().disk_bytes == 0);
  CHECK(here.statistics().spilled == 0);
  CHECK(origin.accepted() == 10);
}

TEST_CASE("where there is no memory for a copy, the get is refused with what is taken",
          "[transfer][exchange]") {
  Node origin(1_node), here(2_node, {.cap_bytes = 8 * kMiB, .patience = 2s});
  origin.attach(10_process);
  here.attach(20_process);
  const auto small = origin.put(10_process, 6 * kMiB), other = origin.put(10_process, 6 * kMiB),
             large = origin.put(10_process, 9 * kMiB);
  // On a slow machine the patience may end before a copy has come.
  const auto comes = [&](ObjectId object) {
    return eventually([&] {
      return here.has(20_process, here.get(20_process, object, 6 * kMiB, origin.address()), object);
    });
  };
  REQUIRE(comes(small));
  const auto full = here.get(20_process, other, 6 * kMiB, origin.address());
  REQUIRE(full.refusal);
  CHECK(full.refusal->kind == Kind::Full);
  CHECK_THAT(full.refusal->message, Catch::Matchers::Contains("objects in use 6.0 MiB"));
  const auto never = here.get(20_process, large, 9 * kMiB, origin.address());
  REQUIRE(never.refusal);
  CHECK(never.refusal->kind == Kind::TooLarge);
  here.unpin(20_process, small);
  CHECK(comes(other));
}

TEST_CASE("what its owner frees is freed on every node that has it", "[transfer][exchange][free]") {
  Node origin(1_node), one(2_node), two(3_node), owner(4_node);
  origin.attach(10_process);
  one.attach(20_process);
  two.attach(30_process);
  owner.attach(40_process);
  const auto before = one.statistics();
  const auto object = origin.put(10_process, kMiB, 40_process);
  for (auto* node : {&one, &two}) {
    const ProcessId process = node == &one ? 20_process : 30_process;
    CHECK(
        node->has(process, node->get(process, object, kMiB, origin.address(), 40_process), object));
    node->unpin(process, object);
  }
  CHECK(eventually([&] { return origin.sending() == 0; }));
  owner.free(40_process, object, origin.address());
  for (auto* node : {&origin, &one, &two}) CHECK(is_at_rest(*node, before));
  const auto gone = one.get(20_process, object, kMiB, origin.address(), 40_process);
  REQUIRE(gone.refusal);
  CHECK(gone.refusal->kind == Kind::Unknown);
  CHECK_THAT(gone.refusal->message, Catch::Matchers::Contains("it was freed"));
}

TEST_CASE("the head is asked once an owner, and its end frees what it owned",
          "[transfer][exchange][free]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  const auto before = here.statistics();
  for (int i = 0; i < 3; ++i) {
    const auto object = origin.put(10_process, kMiB, 40_process);
    CHECK(here.has(20_process, here.get(20_process, object, kMiB, origin.address(), 40_process),
                   object));
    here.unpin(20_process, object);
  }
  CHECK(here.watched() == std::set<ProcessId>{40_process});
  CHECK(origin.watched() == std::set<ProcessId>{40_process});
  CHECK(eventually([&] { return origin.sending() == 0; }));
  here.owner_ended(40_process);
  CHECK(is_at_rest(here, before));
  CHECK(origin.statistics().objects == 3);
  origin.owner_ended(40_process);
  CHECK(is_at_rest(origin, before));
}

TEST_CASE("another job's object is not sent", "[transfer][exchange]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process, 1_job);
  here.attach(20_process, 2_job);
  const auto object = origin.put(10_process, kMiB);
  const auto answer = here.get(20_process, object, kMiB, origin.address());
  REQUIRE(answer.refusal);
  CHECK(answer.refusal->kind == Kind::Unknown);
  here.free(20_process, object, origin.address());
  origin.attach(11_process, 2_job);  // now that job is there too
  const auto again = here.get(20_process, object, kMiB, origin.address());
  REQUIRE(again.refusal);
  CHECK(again.refusal->kind == Kind::Unknown);
  CHECK(origin.statistics().objects == 1);
}

TEST_CASE("a job that ends while its objects are on their way leaves nothing",
          "[transfer][exchange]") {
  Node origin(1_node), here(2_node);
  origin.attach(10_process);
  here.attach(20_process);
  const auto before = here.statistics();
  const auto object = origin.put(10_process, 32 * kMiB);
  const Proxy slow(origin.address(), slowly(16 * kMiB));
  auto answer = here.ask(20_process, object, 32 * kMiB, slow.address());
  CHECK(eventually([&] { return slow.came_back() > 2 * kMiB; }));
  here.job_ended();
  CHECK(is_at_rest(here, before));
  CHECK(eventually([&] { return here.statistics().warm_bytes == 0; }));
  origin.job_ended();
  CHECK(is_at_rest(origin, before));
  here.attach(21_process);
  origin.attach(11_process);
  const auto later = origin.put(11_process, kMiB);
  CHECK(here.has(21_process, here.get(21_process, later, kMiB, origin.address()), later));
}

TEST_CASE("a process without a node pulls into its own memory", "[transfer][pull]") {
  Node origin(1_node);
  origin.attach(10_process);
  const auto object = origin.put(10_process, 5 * kMiB + 3);
  boost::asio::io_context loop;
  std::vector<std::byte> memory(5 * kMiB + 3);
  PullOptions options;
  options.self = {.role = wire::Role::DRIVER, .cluster = kCluster};
  options.key = token();
  bool done = false;
  const auto pull =
      std::make_shared<Pull>(loop, Pull::Wanted{object, kJob, origin.address()}, memory, options,
                             nullptr, [&](const std::optional<store::Refusal>& refusal) {
                               if (refusal) UNSCOPED_INFO(refusal->message);
                               CHECK_FALSE(refusal);
                               done = true;
                             });
  pull->start();
  loop.run();
  CHECK(done);
  CHECK(is_filled(memory, object));
}
