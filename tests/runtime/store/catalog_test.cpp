// What a catalog does with memory, the disk, and the objects that it has.
#include "catalog_world.hpp"

using namespace troupe::store;
using namespace troupe::store::test;

TEST_CASE("pages that were freed are handed out again, warm for who wrote them",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 4);
  world.catalog.free(1_process, {1_process, 1}, false);

  const auto again = world.of<Created>(
      world.catalog.create(1_process, RequestId(100), {1_process, 2}, 1_process, 4 * kPage));
  REQUIRE(again.size() == 1);  // at once: nothing had to be committed
  CHECK(again[0].warm);
  world.catalog.free(1_process, {1_process, 2}, false);
  const auto other = world.of<Created>(
      world.catalog.create(2_process, RequestId(1), {2_process, 1}, 2_process, 4 * kPage));
  REQUIRE(other.size() == 1);
  CHECK_FALSE(other[0].warm);
}

TEST_CASE("warm pages that are too small are exchanged for others, below the cap",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 5);
  world.put({1_process, 2}, 1);
  world.catalog.free(1_process, {1_process, 1}, false);

  const auto effects =
      world.catalog.create(1_process, RequestId(100), {1_process, 3}, 1_process, 8 * kPage);

  const auto punched = world.of<Punch>(effects);
  REQUIRE(punched.size() == 1);
  CHECK(punched[0].extent.bytes == 4 * kPage);  // and not more
  CHECK(std::holds_alternative<Punch>(effects.front()));
  CHECK(world.of<Commit>(effects).size() == 1);
}

TEST_CASE("the least recently used leaves memory first, and what is used stays",
          "[store][catalog]") {
  CatalogWorld world;
  for (std::uint64_t number = 1; number <= 3; ++number) world.put({1_process, number}, 3);
  world.catalog.get(2_process, RequestId(1), {1_process, 1});
  world.catalog.get(2_process, RequestId(2), {1_process, 2});
  world.catalog.unpin(2_process, {1_process, 2}, 1);

  auto effects = world.create({1_process, 4}, 3);
  CHECK(world.of<Recall>(effects).size() == 1);  // process 2 has a pin, which may be idle
  effects = world.catalog.returned(2_process, world.of<Recall>(effects)[0].round, {});

  const auto written = world.of<WriteOut>(effects);
  REQUIRE(written.size() == 1);
  CHECK(written[0].object == ObjectId{1_process, 3});  // 1 is pinned, 2 was used after 3
  effects = world.catalog.written({1_process, 3}, std::nullopt);
  CHECK(world.of<Created>(effects).size() == 1);
}

TEST_CASE("a process that names another's object changes nothing about what that one may make",
          "[store][catalog]") {
  CatalogWorld world;
  world.catalog.get(1_process, RequestId(101), {1_process, 5});  // which may come
  for (const ObjectId object : {ObjectId{1_process, 5}, ObjectId{1_process, 100}}) {
    const auto declined =
        world.of<Declined>(world.catalog.create(2_process, RequestId(1), object, 2_process, kPage));
    REQUIRE(declined.size() == 1);
    CHECK(declined[0].to == 2_process);
    CHECK(declined[0].refusal.kind == Refusal::Kind::Invalid);
  }

  CHECK(world.of<Declined>(world.catalog.get(2_process, RequestId(2), {1_process, 5}))
            .empty());  // it may still come
  CHECK(world.of<Created>(world.create({1_process, 5}, 1)).size() == 1);
  CHECK(world.of<Got>(world.catalog.seal(1_process, {1_process, 5}, false)).size() == 2);
}

TEST_CASE("who gave up its place in the line for memory and asks again stands at its end",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 5);
  CHECK(world.of<WriteOut>(world.create({2_process, 1}, 8, 2_process)).size() == 1);
  REQUIRE(
      world.of<Created>(world.settle(world.catalog.written({1_process, 1}, std::nullopt))).size() ==
      1);

  const auto recalls =
      world.of<Recall>(world.create({1_process, 2}, 10));  // first in the line, and stuck
  REQUIRE(recalls.size() == 1);
  world.catalog.returned(2_process, recalls[0].round, {});
  const auto stuck = world.request;
  world.catalog.get(2_process, RequestId(1001), {1_process, 1});  // on the disk
  world.create({1_process, 3}, 6);
  REQUIRE(world.of<Declined>(world.catalog.expired(2_process, RequestId(1001))).size() == 1);
  CHECK(world.of<ReadBack>(world.catalog.get(2_process, RequestId(1002), {1_process, 1})).empty());
  world.catalog.expired(1_process, stuck);

  const auto effects = world.settle(world.catalog.free(2_process, {2_process, 1}, false));

  const auto created = world.of<Created>(effects);
  REQUIRE(created.size() == 1);
  CHECK(created[0].object == ObjectId{1_process, 3});
  CHECK(world.of<ReadBack>(effects).empty());
}

TEST_CASE("who waits behind another for memory asks nobody again", "[store][catalog]") {
  CatalogWorld world;
  for (std::uint64_t number = 1; number <= 2; ++number) world.put({1_process, number}, 5);
  world.catalog.get(2_process, RequestId(1), {1_process, 1});
  auto effects = world.create({1_process, 3}, 5);
  CHECK(world.of<Recall>(effects).size() == 1);
  world.create({1_process, 4}, 5);
  world.catalog.returned(2_process, world.of<Recall>(effects)[0].round, {});

  effects = world.catalog.written({1_process, 2}, std::nullopt);

  CHECK(world.of<Created>(effects).size() == 1);
  CHECK(world.of<Recall>(effects).empty());
  CHECK(world.of<WriteOut>(world.catalog.unpin(2_process, {1_process, 1}, 1)).size() == 1);
}

TEST_CASE("what comes back from the disk leaves it again without being written",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 8);
  world.create({1_process, 2}, 8);
  world.catalog.written({1_process, 1}, std::nullopt);
  world.catalog.seal(1_process, {1_process, 2}, false);
  auto effects = world.catalog.get(1_process, RequestId(100), {1_process, 1});
  CHECK(world.of<WriteOut>(effects).size() == 1);  // of 1.2
  effects = world.settle(world.catalog.written({1_process, 2}, std::nullopt));
  REQUIRE(world.of<ReadBack>(effects).size() == 1);
  effects = world.catalog.restored({1_process, 1}, std::nullopt);
  REQUIRE(world.of<Got>(effects).size() == 1);
  world.catalog.unpin(1_process, {1_process, 1}, 1);

  effects = world.settle(world.catalog.get(1_process, RequestId(101), {1_process, 2}));

  CHECK(world.of<WriteOut>(effects).empty());
  CHECK(world.of<ReadBack>(effects).size() == 1);
}

TEST_CASE("an object that is wanted while it is written out stays", "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 8);
  world.create({1_process, 2}, 8);
  CHECK(world.of<Got>(world.catalog.get(1_process, RequestId(100), {1_process, 1})).size() == 1);

  auto effects = world.catalog.written({1_process, 1}, std::nullopt);

  CHECK(world.of<Created>(effects).empty());
  CHECK(world.catalog.statistics().pinned_bytes == 8 * kPage);
  effects = world.settle(world.catalog.unpin(1_process, {1_process, 1}, 1));
  CHECK(world.of<Created>(effects).size() == 1);
}

TEST_CASE("memory that an owner frees is not used again while its writer writes",
          "[store][catalog]") {
  CatalogWorld world;
  world.create({1_process, 1}, 8, 2_process);
  world.catalog.free(2_process, {1_process, 1}, false);
  CHECK(world.catalog.statistics().object_bytes == 8 * kPage);
  world.catalog.seal(1_process, {1_process, 1}, false);
  CHECK(world.catalog.statistics().objects == 0);
}

TEST_CASE("a free that comes before the create is not forgotten", "[store][catalog]") {
  CatalogWorld world;
  world.catalog.free(2_process, {1_process, 1}, false);
  world.create({1_process, 1}, 8, 2_process);
  world.catalog.seal(1_process, {1_process, 1}, false);
  CHECK(world.catalog.statistics().objects == 0);
  world.catalog.free(2_process, {1_process, 1}, false);  // once more, now that it is gone
  world.put({1_process, 2}, 8, 2_process);
  CHECK(world.catalog.statistics().objects == 1);
}

TEST_CASE("nobody but its owner and its writer can free an object", "[store][catalog]") {
  CatalogWorld world;
  world.catalog.attach(3_process, 1_job);
  world.put({1_process, 1}, 1, 2_process);
  world.catalog.free(3_process, {1_process, 1}, false);
  CHECK(world.catalog.statistics().objects == 1);
  world.catalog.free(2_process, {1_process, 1}, false);
  CHECK(world.catalog.statistics().objects == 0);
}

TEST_CASE("who asked first is served first", "[store][catalog]") {
  CatalogWorld world;
  world.create({1_process, 1}, 8);
  world.create({1_process, 2}, 6);
  world.create({1_process, 3}, 1);  // would fit, and would let the other wait for ever
  CHECK(world.catalog.statistics().waiting == 2);
  const auto effects = world.settle(world.catalog.free(1_process, {1_process, 1}, false));
  REQUIRE(world.of<Created>(effects).size() == 2);
  CHECK(world.of<Created>(effects)[0].object == ObjectId{1_process, 2});
}

TEST_CASE("a limit of the machine is taken for the cap until it may grow again",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 4);
  auto effects =
      world.catalog.create(1_process, RequestId(100), {1_process, 2}, 1_process, 4 * kPage);
  REQUIRE(world.of<Commit>(effects).size() == 1);

  effects = world.catalog.committed(
      {1_process, 2}, Refusal{Refusal::Kind::MemoryFull, "the machine has 1 page left"});

  REQUIRE(world.of<WriteOut>(effects).size() == 1);  // instead of a refusal
  effects =
      world.catalog.written({1_process, 1}, Refusal{Refusal::Kind::DiskFull, "no room there"});
  REQUIRE(world.of<Declined>(effects).size() == 1);
  const auto refusal = world.of<Declined>(effects)[0].refusal;
  CHECK(refusal.kind == Refusal::Kind::DiskFull);
  CHECK_THAT(refusal.message, Catch::Contains("may use 16.0 KiB") &&
                                  Catch::Contains("the machine has 1 page left") &&
                                  Catch::Contains("no room there"));
  world.catalog.memory_may_grow();
  CHECK(world.of<Created>(world.create({1_process, 3}, 4)).size() == 1);
}

TEST_CASE("a number that a request of the same process has already is refused, and both end well",
          "[store][catalog]") {
  CatalogWorld world;
  // Of objects that are not made yet: what waits for them is kept by their names.
  CHECK(world.catalog.get(2_process, RequestId(7), {1_process, 1}).empty());
  const auto declined =
      world.of<Declined>(world.catalog.get(2_process, RequestId(7), {1_process, 2}));
  REQUIRE(declined.size() == 1);
  CHECK(declined[0].refusal.kind == Refusal::Kind::Invalid);
  world.catalog.process_ended(2_process);
  world.put({1_process, 1}, 1);
  world.put({1_process, 2}, 1);

  CHECK(world.catalog.get(1_process, RequestId(300), {1_process, 9}).empty());
  CHECK(world
            .of<Declined>(
                world.catalog.create(1_process, RequestId(300), {1_process, 3}, 1_process, kPage))
            .size() == 1);
}

TEST_CASE("the end of a job closes its arena once nothing works on it", "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 8);
  world.create({1_process, 2}, 8);  // 1.1 is being written out
  auto effects = world.catalog.job_ended(1_job);
  CHECK(world.of<CloseArena>(effects).empty());
  effects = world.catalog.written({1_process, 1}, std::nullopt);
  CHECK(world.of<Erase>(effects).size() == 1);
  CHECK(world.of<CloseArena>(effects).size() == 1);
  CHECK(world.catalog.statistics().objects == 0);
}

TEST_CASE("a process that attaches again keeps what it has", "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 4);
  world.catalog.attach(1_process, 1_job);
  CHECK(world.of<Got>(world.catalog.get(1_process, RequestId(100), {1_process, 1})).size() == 1);
  world.catalog.process_ended(1_process);
  world.catalog.attach(1_process, 1_job);  // its socket broke, and it has connected again
  CHECK(world.of<Created>(world.create({1_process, 2}, 4)).size() == 1);
}

TEST_CASE("a store of any size has an arena that is a number of pages", "[store][catalog]") {
  const std::uint64_t most = ~std::uint64_t{0};
  for (const std::uint64_t cap :
       {std::uint64_t{0}, std::uint64_t{1}, kPage, std::uint64_t{1} << 60, most}) {
    const Catalog catalog({.cap_bytes = cap});
    CHECK(catalog.space_bytes() > 0);
    CHECK(catalog.space_bytes() % kPage == 0);
  }
}

TEST_CASE("what is written in kept memory for an owner that has ended goes once it is written",
          "[store][catalog]") {
  CatalogWorld world;
  const auto keep = [&](ObjectId object) {
    world.put(object, 4);
    const auto kept = world.of<Kept>(world.catalog.free(1_process, object, true));
    REQUIRE(kept.size() == 1);
    return kept[0].extent;
  };
  const auto make = [&](ObjectId object, Extent extent) {
    return world.catalog.create_in_kept(1_process, object, 9_process, 4 * kPage, extent.offset);
  };
  world.catalog.owner_ended(9_process);

  REQUIRE(std::holds_alternative<Effects>(make({1_process, 2}, keep({1_process, 1}))));
  CHECK(world.catalog.statistics().pinned_bytes == 4 * kPage);
  world.catalog.seal(1_process, {1_process, 2}, false);
  CHECK_FALSE(world.catalog.knows({1_process, 2}));

  const auto extent = keep({1_process, 3});
  REQUIRE(std::holds_alternative<Effects>(make({1_process, 4}, extent)));
  CHECK(std::holds_alternative<Refusal>(
      make({1_process, 5}, extent)));  // which it does not keep any more
  world.catalog.free(1_process, {1_process, 4}, true);
  CHECK_FALSE(world.catalog.knows({1_process, 4}));
  world.catalog.check();
}

TEST_CASE("frees that come before their objects are counted, and forgotten once those cannot come",
          "[store][catalog]") {
  Catalog catalog({.cap_bytes = 10 * kPage, .most_freed_early = 2});
  catalog.attach(1_process, 1_job);
  for (std::uint64_t number = 1; number <= 4; ++number)
    catalog.free({}, {1_process, number}, false);
  const auto put = [&](ObjectId object) {
    for (const auto& effect :
         catalog.create(1_process, RequestId(object.number), object, 9_process, kPage)) {
      if (std::holds_alternative<Commit>(effect)) catalog.committed(object, std::nullopt);
    }
    catalog.seal(1_process, object, false);
  };
  put({1_process, 2});  // and 1 was passed over
  CHECK_FALSE(catalog.knows({1_process, 2}));
  for (std::uint64_t number = 5; number <= 8; ++number)
    catalog.free({}, {1_process, number}, false);
  for (std::uint64_t number = 3; number <= 8; ++number) put({1_process, number});
  for (std::uint64_t number = 3; number <= 8; ++number)
    CHECK(catalog.knows({1_process, number}) == (number != 5 && number != 6));
}
