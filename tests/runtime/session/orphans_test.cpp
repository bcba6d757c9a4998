#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "objects/orphans.hpp"

using namespace troupe;
using namespace troupe::runtime;
using store::ObjectId;

namespace {

/// A process that has called others, and knows of some results.
struct Owner {
  std::set<ProcessId> may_answer;
  std::set<ObjectId> known;
  std::vector<store::Wanted> freed;
  Orphans orphans{{.may_answer = [this](ProcessId writer) { return may_answer.contains(writer); },
                   .is_known = [this](ObjectId object) { return known.contains(object); },
                   .free = [this](const store::Wanted& place) { freed.push_back(place); }}};

  void lose(ProcessId writer) {
    may_answer.erase(writer);
    orphans.lost(writer);
  }
};

}  // namespace

TEST_CASE("a result is freed only once its writer can tell of it no more, whoever names it",
          "[session][store]") {
  Owner owner;
  owner.may_answer = {7_process, 8_process};
  const auto far = std::make_shared<const Address>(Address{.node = 3_node, .port = 4711});
  owner.orphans.named({{7_process, 1}, {7_process, 2}}, far);
  owner.orphans.named({{8_process, 1}}, nullptr);
  CHECK(owner.freed.empty());
  owner.known.insert({7_process, 1});  // the reply was on its way
  owner.lose(7_process);
  REQUIRE(owner.freed.size() == 1);
  CHECK(owner.freed[0].object == ObjectId{7_process, 2});
  CHECK(owner.freed[0].at == far);
  owner.lose(8_process);
  REQUIRE(owner.freed.size() == 2);
  CHECK(owner.freed[1].object == ObjectId{8_process, 1});
  CHECK(owner.freed[1].at == nullptr);
  owner.lose(7_process);
  CHECK(owner.freed.size() == 2);
}

TEST_CASE("a result of a process that is known to have ended is freed when it is named",
          "[session][store]") {
  Owner owner;
  owner.known = {{7_process, 1}};
  owner.orphans.named({{7_process, 1}, {7_process, 2}}, nullptr);
  REQUIRE(owner.freed.size() == 1);
  CHECK(owner.freed[0].object == ObjectId{7_process, 2});
}
