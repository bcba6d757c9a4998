// get() of many refs: a failure is told when it is there, and not in its turn.
#include <chrono>

#include <catch2/catch.hpp>

#include "functions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

struct Hand {
  int works(int milliseconds) const {
    const auto rank = this_gang()->rank();
    return rank == 2 ? dies_by(SIGKILL) : sleeps(milliseconds);
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
  const auto start = Clock::now();
  const auto refs = ranks.all<&Hand::works>(8'000);
  try {
    get(refs);
    FAIL("rank 2 is dead");
  } catch (const ActorDied& error) {
    CHECK_THAT(error.what(), Catch::Contains("rank 2 of a gang of") && Catch::Contains("signal 9"));
  }
  CHECK(Clock::now() - start < 4s);
  CHECK_FALSE(refs[0].ready());
}

TEST_CASE("the ranks of a broken gang that live answer on", "[runtime][session][get]") {
  auto cluster = init({.cpus = 3});
  const auto ranks = gang<Hand>({.size = 3});
  CHECK_THROWS_AS(get(ranks.all<&Hand::works>(1)), ActorDied);
  CHECK(ranks.rank(0).call<&Hand::answers>().get(20s) == 0);
  CHECK_THROWS_AS(ranks.rank(2).call<&Hand::answers>().get(20s), ActorDied);
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

TEST_CASE("get of refs with a time limit says how many are missing, and the calls go on",
          "[runtime][session][get]") {
  auto cluster = init({.cpus = 2});
  const std::vector<Ref<int>> refs{put(5), task<sleeps>(300), put(7), task<sleeps>(400)};
  CHECK_THROWS_WITH(get(refs, 1ms), Catch::Contains("2 of 4 values were not there within 1 ms"));
  CHECK_THROWS_AS(get(refs, 1ms), TimedOut);
  CHECK(get(refs, 20s).size() == 4);
}

TEST_CASE("get of refs without a value waits for all of them, within its time limit",
          "[runtime][session][get]") {
  auto cluster = init({.cpus = 2});
  get(std::vector<Ref<void>>{}, 0ms);
  const auto gate = spawn<Counter>(0);
  const std::vector<Ref<void>> refs{gate.ready(), task<passes>(gate), task<passes>(gate)};
  refs[0].get(20s);
  CHECK_THROWS_AS(get(refs, 1ms), TimedOut);
  CHECK_THROWS_WITH(get(refs, 1ms), Catch::Contains("2 of 3 values were not there within 1 ms"));
  CHECK_FALSE((refs[1].ready() || refs[2].ready()));
  gate.call<&Counter::add>(1).get(20s);
  get(refs, 20s);
  CHECK((refs[1].ready() && refs[2].ready()));
  CHECK_THROWS_WITH(get(std::vector<Ref<void>>{gate.ready(), task<stumbles>()}, 20s),
                    Catch::Contains("no such step"));
}
