// What a catalog tells: processes of views, objects and refusals, and who lists what it has.
#include "catalog_world.hpp"

using namespace troupe::store;
using namespace troupe::store::test;

TEST_CASE("a view that is given out while memory is short is not held beyond its last user",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 4);
  world.put({1_process, 2}, 4);
  world.create({2_process, 1}, 1);
  CHECK(world.of<Recall>(world.catalog.get(2_process, RequestId(1), {1_process, 1}))
            .empty());  // there is memory
  auto effects = world.create({1_process, 3}, 4);
  REQUIRE(world.of<Recall>(effects).size() == 1);
  const auto recalls = [&](const Effects& of, ObjectId view) {
    const auto found = world.of<Recall>(of);
    return found.size() == 1 && found[0].from == 2_process && found[0].round == 0 &&
           found[0].view == view;
  };

  CHECK(recalls(world.catalog.get(2_process, RequestId(2), {1_process, 2}), {1_process, 2}));
  CHECK(recalls(world.catalog.seal(2_process, {2_process, 1}, true), {2_process, 1}));
  CHECK(
      world.of<WriteOut>(world.catalog.returned(2_process, world.of<Recall>(effects)[0].round, {}))
          .empty());
  CHECK(world.of<WriteOut>(world.catalog.unpin(2_process, {1_process, 2}, 1)).size() == 1);
}

TEST_CASE("what a process wrote for another is named to that one when it ends",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({2_process, 1}, 1, 1_process);
  world.put({2_process, 2}, 1, 2_process);
  world.put({2_process, 3}, 1, 1_process);
  world.put({2_process, 4}, 1, 9_process);  // which is of another node
  world.catalog.free(1_process, {2_process, 3}, false);
  world.create({2_process, 5}, 1, 1_process);  // never sealed

  const auto orphans = world.of<Orphans>(world.catalog.process_ended(2_process));

  REQUIRE(orphans.size() == 2);
  CHECK(orphans[0].to == 1_process);
  CHECK(orphans[0].objects == std::vector<ObjectId>{{2_process, 1}});
  CHECK(orphans[1].to == 9_process);
  CHECK(orphans[1].objects == std::vector<ObjectId>{{2_process, 4}});
  CHECK(world.catalog.knows({2_process, 1}));
  world.catalog.free(1_process, {2_process, 1}, false);
  CHECK_FALSE(world.catalog.knows({2_process, 1}));
}

TEST_CASE("a damaged copy is told to who wants it, and the memory for it goes back",
          "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 8);
  world.create({1_process, 2}, 8);
  world.catalog.written({1_process, 1}, std::nullopt);
  world.catalog.free(1_process, {1_process, 2}, false);
  auto effects = world.catalog.get(2_process, RequestId(1), {1_process, 1});
  REQUIRE(world.of<ReadBack>(effects).size() == 1);

  effects = world.catalog.restored({1_process, 1}, Refusal{Refusal::Kind::Damaged, "changed"});

  REQUIRE(world.of<Declined>(effects).size() == 1);
  CHECK(world.of<Declined>(effects)[0].refusal.kind == Refusal::Kind::Damaged);
  CHECK(world.catalog.statistics().object_bytes == 0);
}

TEST_CASE("ids of other processes and ids that are taken are refused", "[store][catalog]") {
  CatalogWorld world;
  world.put({1_process, 1}, 1);
  for (const auto object : {ObjectId{1_process, 1}, ObjectId{2_process, 5}}) {
    const auto declined = world.of<Declined>(
        world.catalog.create(1_process, RequestId(100), object, 1_process, kPage));
    REQUIRE(declined.size() == 1);
    CHECK(declined[0].refusal.kind == Refusal::Kind::Invalid);
  }
  const auto made = world.catalog.create_in_kept(1_process, {1_process, 2}, 1_process, kPage,
                                                 0);  // it keeps nothing
  CHECK(std::get<Refusal>(made).kind == Refusal::Kind::Invalid);
}

TEST_CASE("nobody attaches under a number that is no process's or another job's",
          "[store][catalog]") {
  CatalogWorld world;
  CHECK(world.catalog.why_not_attach(1_process, 2_job)->message ==
        "process 1 is of job 1, not of job 2");
  CHECK(world.catalog.why_not_attach({}, 1_job));
  CHECK(world.catalog.why_not_attach(Catalog::node_of(1_job), 1_job));
  CHECK_FALSE(world.catalog.why_not_attach(1_process, 1_job));
  CHECK_FALSE(world.catalog.why_not_attach(3_process, 2_job));
}

TEST_CASE("the largest objects are told first, with their states and who has them pinned",
          "[store][catalog]") {
  using State = ObjectView::State;
  CatalogWorld world;
  world.put({1_process, 1}, 1, 2_process);
  world.put({1_process, 2}, 3);
  world.put({2_process, 1}, 1, 2_process);
  world.create({2_process, 2}, 2);
  world.of<Got>(world.catalog.get(2_process, RequestId(100), {1_process, 2}));
  world.catalog.free(1_process, {1_process, 2}, false);

  const auto all = world.catalog.largest(100);

  REQUIRE(all.size() == 4);
  CHECK(all[0].object == ObjectId{1_process, 2});
  CHECK(all[0].state == State::Freed);
  CHECK(all[0].pinned_by == std::vector{2_process});
  CHECK(all[1].object == ObjectId{2_process, 2});
  CHECK(all[1].state == State::Writing);
  CHECK(all[1].bytes == 2 * kPage);
  CHECK(all[2].object == ObjectId{1_process, 1});
  CHECK(all[2].state == State::Memory);
  CHECK(all[2].owner == 2_process);
  CHECK(all[2].pinned_by.empty());
  CHECK(all[3].object == ObjectId{2_process, 1});
  const auto first = world.catalog.largest(2);
  REQUIRE(first.size() == 2);
  CHECK(first[1].object == ObjectId{2_process, 2});
  CHECK(CatalogWorld().catalog.largest(2).empty());
}
