// What is said of a call that is not there in time.
#include <chrono>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "functions.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
using Catch::Contains;

namespace {

/// Of a value that is not there in time.
template <class Wait>
std::string told(Wait wait) {
  try {
    wait();
  } catch (const TimedOut& error) {
    return error.what();
  }
  return "it was there";
}

/// What who waits again and again is told once it has come to that: on a slow machine a call takes
/// its time until it runs.
template <class Wait>
std::string told_at_last(const std::string& part, Wait wait) {
  const auto end = std::chrono::steady_clock::now() + kGuard;
  for (;;) {
    const auto why = told(wait);
    if (why.find(part) != std::string::npos || std::chrono::steady_clock::now() > end) return why;
  }
}

/// Calls go straight to a process, so that it is known whether they run, once two have talked a
/// while.
template <class Call>
void talk(Call call) {
  for (int i = 0; i < 100; ++i) {
    call().get(kGuard);
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

TEST_CASE("who waits in vain for a method is told which, and whether it runs",
          "[runtime][session][timeout]") {
  auto cluster = init({.cpus = 1});
  const auto counter = spawn<Counter>(0);
  talk([&] { return counter.call<&Counter::add>(0); });
  Gate gate;
  const auto first = counter.call<&Counter::waits>(gate.path());
  const auto second = counter.call<&Counter::add>(1);
  CHECK_THAT(
      told_at_last("it runs in process ", [&] { first.get(10ms); }),
      Contains("Counter::waits (it runs in process ") && Contains(") was not there within 10 ms"));
  CHECK_THAT(told_at_last(" is busy with other calls: ", [&] { second.get(1ms); }),
             Contains("Counter::add (it has not begun: process ") &&
                 Contains(" is busy with other calls: "
                          "troupe::test::Counter::waits runs, "
                          "called "));
  const auto third = counter.call<&Counter::add>(1);
  CHECK_THAT(told_at_last("Counter::waits runs", [&] { third.get(1ms); }),
             Contains("Counter::waits runs, called ") &&
                 Contains(" s ago, and 1 call of this program stands between)"));
  CHECK_THAT(told([&] {
               get({first, second}, 1ms);
             }),
             Contains("2 of 2 values were not there within 1 ms; not there: "
                      "troupe::test::Counter::waits (it runs") &&
                 Contains(", troupe::test::Counter::add (it has not begun"));
  gate.open();
  CHECK(second.get(kGuard) == 1);
  CHECK(third.get(kGuard) == 2);
}

TEST_CASE("who waits in vain for an actor that is not placed yet is told so",
          "[runtime][session][timeout]") {
  auto cluster = init({.cpus = 1});
  const auto first = with({.cpus = 1}).spawn<Counter>(0);
  first.call<&Counter::add>(1).get(kGuard);
  {
    const auto second = with({.cpus = 1}).spawn<Counter>(0);
    const auto ref = second.call<&Counter::add>(1);
    CHECK_THAT(told_at_last("waits for a place", [&] { ref.get(10ms); }),
               Contains("the value of troupe::test::Counter::add (its actor waits for a place: "));
  }
  Gate gate;
  const auto third = spawn<Counter>(0);
  const auto ref = third.call<&Counter::waits>(gate.path());  // made before it is placed
  CHECK_THAT(told_at_last("has not answered", [&] { ref.get(10ms); }),
             Contains("the value of troupe::test::Counter::waits (its actor, process ") &&
                 Contains(" on node 1, has not answered)"));
}

TEST_CASE("who waits in vain for a task is told which, and what it waits for",
          "[runtime][session][timeout]") {
  auto cluster = init({.cpus = 1});
  Gate gate;
  const auto first = task<wait_at>(gate.path());
  CHECK_THAT(told_at_last("it runs in process ", [&] { first.get(10ms); }),
             Contains("the value of troupe::test::wait_at (it runs in process "));
  const auto other = with({.cpus = 0.5}).task<twice>(4);
  CHECK_THAT(told_at_last("waits for a place", [&] { other.get(1ms); }),
             Contains("the value of troupe::test::twice (it waits for a place"));
  const auto after = task<twice>(first);
  CHECK_THAT(told([&] { after.get(1ms); }), Contains("twice (it waits for its arguments)"));
  gate.open();
  CHECK(after.get(kGuard) == 2);
}

TEST_CASE("who waits in vain for a rank is told which rank it is", "[runtime][session][timeout]") {
  auto cluster = init({.cpus = 2});
  const auto ranks = gang<Rank>({.size = 2});
  for (std::size_t rank = 0; rank < 2; ++rank)
    talk([&] { return ranks.rank(rank).call<&Rank::rank>(); });
  const auto refs = ranks.all<&Rank::waits_for>(std::string("nothing"));
  CHECK_THAT(told_at_last("it runs in ", [&] { refs[1].get(10ms); }),
             Contains("Rank::waits_for of rank 1 (it runs in "));
  CHECK_THAT(told([&] { get(refs, 1ms); }),
             Contains("Rank::waits_for of rank 0 (") && Contains("Rank::waits_for of rank 1 ("));
  ranks.kill();
}
