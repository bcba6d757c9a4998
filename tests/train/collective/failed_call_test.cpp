// A gang of real processes whose ranks hold a communicator: what becomes of the others when the
// call of one of them fails.
#include <troupe/train/communicator.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>
#include <troupe/troupe.hpp>
#include "guard.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Contains;
using troupe::test::kGuard;

namespace {

float add_up(train::Communicator& communicator, float value) {
  communicator.all_reduce(std::span(&value, 1));
  return value;
}

/// Holds its communicator, and makes others by name.
struct Holder {
  std::unique_ptr<train::Communicator> held = train::make_host_communicator(*this_gang());

  /// All ranks add up `steps` times; one throws in place of the last.
  float adds(int steps, int thrower) {
    float sum = 0;
    for (int step = 0; step < steps; ++step) {
      if (step + 1 == steps && held->rank() == thrower) throw std::out_of_range("no such row");
      sum = add_up(*held, 1);
    }
    return sum;
  }
  /// The last rank throws once all have added up: it has done its part.
  float throws_after() {
    const float sum = add_up(*held, 1);
    if (held->rank() == held->size() - 1) throw std::out_of_range("no such row");
    return sum;
  }
  float receives() {
    float value = 1;
    if (held->rank() == 1) throw std::out_of_range("no such row");
    if (held->rank() == 0) held->recv(std::span(&value, 1), 1);
    return value;
  }
  float adds_in_a_part() {
    part = held->split(held->rank() == 2 ? 1 : 0, 0);
    if (held->rank() == 1) throw std::out_of_range("no such row");
    return add_up(*part, 1);
  }
  float catches() {
    try {
      if (held->rank() == 1) throw std::out_of_range("no such row");
    } catch (const std::out_of_range&) {
    }
    return add_up(*held, 1);
  }
  void begins_anew(const std::string& name) {
    held = train::make_host_communicator(*this_gang(), {.name = name});
  }
  /// A communicator of the call's own, which an exception leaves.
  float adds_by_itself() {
    const auto own = train::make_host_communicator(*this_gang(), {.name = "own"});
    if (own->rank() == 1) throw std::out_of_range("no such row");
    return add_up(*own, 1);
  }

  std::unique_ptr<train::Communicator> part;
};

/// Of a call that must fail.
template <class Failing>
std::string error_of(const Ref<float>& ref) {
  try {
    ref.get(kGuard);
  } catch (const Failing& error) {
    return error.what();
  }
  return "no such error";
}

constexpr auto kWhy = "std::out_of_range: no such row (in ";

}  // namespace

TEST_CASE("a rank whose method throws does not keep the others in a collective",
          "[train][collective][failed]") {
  auto cluster = init({.cpus = 3});
  const auto ranks = gang<Holder>({.size = 3});
  const auto refs = ranks.all<&Holder::adds>(3, 1);
  for (const auto r : {0u, 2u}) {
    CHECK_THAT(error_of<GangBroken>(refs[r]),
               Contains("rank 1 left the communicator, as its call failed: ") && Contains(kWhy) &&
                   Contains("in all_reduce of 1 float32 (sum), call 3"));
  }
  CHECK_THAT(error_of<TaskError>(refs[1]), Contains(kWhy));

  SECTION("and get of all the refs throws what it threw") {
    CHECK_THROWS_AS(get(refs, kGuard), TaskError);
  }
  SECTION("it has left the communicator for good, which a later call says") {
    for (const auto& ref : ranks.all<&Holder::adds>(1, -1))
      CHECK_THAT(error_of<GangBroken>(ref), Contains("rank 1 left the communicator"));
  }
  SECTION("all of them work on in a new one") {
    get(ranks.all<&Holder::begins_anew>("second"), kGuard);
    CHECK(get(ranks.all<&Holder::adds>(5, -1), kGuard) == std::vector<float>(3, 3));
  }
}

TEST_CASE("get of a gang's refs throws what the rank threw, and not what the others make of it",
          "[train][collective][failed]") {
  auto cluster = init({.cpus = 3});
  for (int round = 0; round < 10; ++round) {
    const auto ranks = gang<Holder>({.size = 3});
    CHECK_THROWS_WITH(get(ranks.all<&Holder::adds>(2, 2), kGuard),
                      Contains(kWhy) && !Contains("left the communicator"));
  }
}

TEST_CASE("a rank that throws after a collective has done its part in it",
          "[train][collective][failed]") {
  auto cluster = init({.cpus = 3});
  const auto ranks = gang<Holder>({.size = 3});
  const auto refs = ranks.all<&Holder::throws_after>();
  CHECK(refs[0].get(kGuard) == 3);
  CHECK(refs[1].get(kGuard) == 3);
  CHECK_THROWS_AS(refs[2].get(kGuard), TaskError);
}

TEST_CASE("a message from a rank whose method threw is not waited for, nor a part of its gang",
          "[train][collective][failed]") {
  auto cluster = init({.cpus = 3});
  const auto ranks = gang<Holder>({.size = 3});
  const bool message = GENERATE(true, false);
  const auto refs = message ? ranks.all<&Holder::receives>() : ranks.all<&Holder::adds_in_a_part>();
  CHECK_THAT(error_of<GangBroken>(refs[0]),
             Contains("rank 1 left the communicator, as its call failed: ") && Contains(kWhy));
  CHECK(refs[2].get(kGuard) == 1);
}

TEST_CASE("an exception that a method catches ends no communicator",
          "[train][collective][failed]") {
  auto cluster = init({.cpus = 3});
  const auto ranks = gang<Holder>({.size = 3});
  for (int call = 0; call < 3; ++call)
    CHECK(get(ranks.all<&Holder::catches>(), kGuard) == std::vector<float>(3, 3));
}

TEST_CASE("a communicator that an exception leaves says so to those who wait",
          "[train][collective][failed]") {
  auto cluster = init({.cpus = 2});
  const auto ranks = gang<Holder>({.size = 2});
  const auto refs = ranks.all<&Holder::adds_by_itself>();
  CHECK_THAT(error_of<GangBroken>(refs[0]),
             Contains("rank 1 has closed its communicator, as an exception left the function that "
                      "held it"));
  CHECK_THROWS_WITH(get(refs, kGuard), Contains(kWhy));
}
