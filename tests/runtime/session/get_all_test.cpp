// get() of many refs: a failure is told when it is there, and not in its turn.
#include <chrono>

#include <catch2/catch.hpp>

#include "functions.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct Hand {
  int works(const std::string& gate) const {
    const auto rank = this_gang()->rank();
    return rank == 2 ? dies_by(SIGKILL) : wait_at(gate);
  }
  int answers() const { return this_gang()->rank(); }
};

void passes(Actor<Counter> gate) {
  if (waits_for_gate(std::move(gate)) < 0) throw std::runtime_error("the gate stayed closed");
}
void stumbles() { throw std::out_of_range("no such step"); }

}  // namespace

TEST_CASE("get of a gang's refs throws when a rank dies, which it names, while others still work",
          "[runtime][session][get]") {
  auto cluster = init({.cpus = 3});
  const auto ranks = gang<Hand>({.size = 3});
  get(ranks.all<&Hand::answers>());
  Gate gate;
  const auto refs = ranks.all<&Hand::works>(gate.path());
  try {
    get(refs, kGuard);
    FAIL("rank 2 is dead");
  } catch (const ActorDied& error) {
    CHECK_THAT(error.what(),
               Catch::Contains("rank 2 of a gang of actors ") && Catch::Contains("signal 9"));
  }
  CHECK_FALSE(refs[0].ready());
}

TEST_CASE("the ranks of a broken gang that live answer on", "[runtime][session][get]") {
  auto cluster = init({.cpus = 3});
  const auto ranks = gang<Hand>({.size = 3});
  CHECK_THROWS_AS(get(ranks.all<&Hand::works>("no gate")), ActorDied);
  CHECK(ranks.rank(0).call<&Hand::answers>().get(kGuard) == 0);
  CHECK_THROWS_AS(ranks.rank(2).call<&Hand::answers>().get(kGuard), ActorDied);
}

TEST_CASE("get of many refs throws what the first failed one failed with",
          "[runtime][session][get]") {
  auto cluster = init({.cpus = 2});
  std::vector<Ref<int>> refs;
  for (int i = 0; i < 5'000; ++i) refs.push_back(task<twice>(i));
  const auto values = get(refs);
  REQUIRE(values.size() == 5'000);
  CHECK(values[4'999] == 9'998);

  std::vector<Ref<std::string>> some{task<fails>(std::string("first")),
                                     task<fails>(std::string("second"))};
  wait(some, 2);
  CHECK_THROWS_WITH(get(some), Catch::Contains("first"));
  get(std::vector<Ref<int>>{});
}

TEST_CASE("wait hands out as many as were asked for, also of several types and while others run",
          "[runtime][session][wait]") {
  auto cluster = init({.cpus = 2});
  std::vector<Ref<int>> refs;
  for (int i = 0; i < 8; ++i) refs.push_back(task<twice>(i));
  get(refs, kGuard);
  const auto some = wait(refs, 3, kGuard);  // of which all are ready
  CHECK(some.ready == std::vector{refs[0], refs[1], refs[2]});
  CHECK(some.unready.size() == 5);

  Gate gate;
  const Ref<int> later = task<wait_at>(gate.path());
  const Ref<std::string> failed = task<fails>(std::string("none")), text = put("text");
  const auto mixed = wait({later, failed, text, refs[0]}, 2, kGuard);
  REQUIRE(mixed.ready.size() == 2);
  CHECK(mixed.unready.size() == 2);
  CHECK(mixed.unready.front() == later);
  CHECK(wait({later}, 1, 1ms).ready.empty());
  gate.open();
  CHECK(wait({later, failed}, 2, kGuard).ready == std::vector<AnyRef>{later, failed});
}

TEST_CASE("get of refs with a time limit says how many are missing, and the calls go on",
          "[runtime][session][get]") {
  auto cluster = init({.cpus = 2});
  Gate gate;
  const std::vector<Ref<int>> refs{put(5), task<wait_at>(gate.path()), put(7),
                                   task<wait_at>(gate.path())};
  CHECK_THROWS_WITH(get(refs, 1ms), Catch::Contains("2 of 4 values were not there within 1 ms"));
  CHECK_THROWS_AS(get(refs, 1ms), TimedOut);
  gate.open();
  CHECK(get(refs, kGuard).size() == 4);
}

TEST_CASE("get of refs without a value waits for all of them, within its time limit",
          "[runtime][session][get]") {
  auto cluster = init({.cpus = 2});
  get(std::vector<Ref<void>>{}, 0ms);
  const auto gate = spawn<Counter>(0);
  const std::vector<Ref<void>> refs{gate.ready(), task<passes>(gate), task<passes>(gate)};
  refs[0].get(kGuard);
  CHECK_THROWS_AS(get(refs, 1ms), TimedOut);
  CHECK_THROWS_WITH(get(refs, 1ms), Catch::Contains("2 of 3 values were not there within 1 ms"));
  CHECK_FALSE((refs[1].ready() || refs[2].ready()));
  gate.call<&Counter::add>(1).get(kGuard);
  get(refs, kGuard);
  CHECK((refs[1].ready() && refs[2].ready()));
  CHECK_THROWS_WITH(get(std::vector<Ref<void>>{gate.ready(), task<stumbles>()}, kGuard),
                    Catch::Contains("no such step"));
}
