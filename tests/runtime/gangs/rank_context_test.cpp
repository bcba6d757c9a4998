#include "gangs/rank_context.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <troupe/errors.hpp>

#include "../../support/id_literals.hpp"
#include "guard.hpp"

namespace rank_context_test {

using namespace troupe;
using namespace troupe::runtime;
using namespace std::chrono_literals;

namespace {

/// Rank 1 of two, whose rank 0 answers each request with `answer` before the request returns.
std::unique_ptr<RankContext> rank_that_is_answered(Outcome answer) {
  const auto place = std::make_shared<const Address>();
  return std::make_unique<RankContext>(
      1_gang, 1, std::vector<RankContext::Place>{{.process = place}, {.process = place}},
      [answer = std::move(answer)](const RendezvousRequest&,
                                   const std::function<void(Outcome)>& done) { done(answer); });
}

}  // namespace

TEST_CASE("a wait whose time was over on rank 0 first has timed out", "[runtime][gang]") {
  RendezvousTable table;
  std::optional<Outcome> dropped;
  const RendezvousRequest get{.key = "key", .timeout = 5ms};
  const RendezvousTable::TimePoint now{};
  table.ask(
      1_gang, get, [&](Outcome outcome) { dropped = std::move(outcome); }, now);
  table.ask(
      1_gang, get, [](const Outcome&) {}, now + 6ms);
  REQUIRE(dropped);
  CHECK_THROWS_WITH(rank_that_is_answered(*dropped)->get("key", 5ms),
                    "rank 1 waited 5 ms for rendezvous key 'key', which no rank has set");

  // The kind says what it is, and the text is for people.
  auto failure = std::get<Failure>(*dropped);
  failure.message = "said in other words";
  CHECK_THROWS_AS(rank_that_is_answered(failure)->get("key", 5ms), TimedOut);
  CHECK_THROWS_AS(rank_that_is_answered(failure)->await("key", 1, 5ms), TimedOut);
  auto same_words = std::get<Failure>(*dropped);
  same_words.kind = Failure::Kind::Refused;
  CHECK_THROWS_AS(rank_that_is_answered(same_words)->get("key", 5ms), Refused);
  const Failure refusal{.kind = Failure::Kind::Refused, .message = "it holds too many keys"};
  CHECK_THROWS_AS(rank_that_is_answered(refusal)->get("key", 5ms), Refused);
}

TEST_CASE("a counter of a rank is one key of the table that rank 0 keeps, however far it is",
          "[runtime][gang]") {
  RendezvousTable table;
  const auto place = std::make_shared<const Address>();
  RankContext rank(1_gang, 0, {{.process = place}},
                   [&](RendezvousRequest request, std::function<void(Outcome)> done) {
                     table.ask(1_gang, std::move(request), std::move(done), {});
                   });
  for (std::uint64_t count = 1; count <= 1'000; ++count) {
    rank.advance("counter", count, "note");
    REQUIRE(rank.await("counter", count, test::kGuard) == "note");
  }
  CHECK(table.keys(1_gang) == 1);
}

TEST_CASE("who hears of the end of rank 0 from its connection finds the gang broken",
          "[runtime][gang]") {
  const auto rank = rank_that_is_answered(Failure{.kind = Failure::Kind::ProcessDied,
                                                  .message = "process 7 was lost with node 2",
                                                  .exit_code = -1});
  int told = 0;
  const auto listener = rank->on_broken([&] { ++told; });
  CHECK_THROWS_WITH(rank->get("key", test::kGuard),
                    "rank 0 is gone: process 7 was lost with node 2");
  CHECK(rank->broken() != 0);
  CHECK(rank->why_broken().exit_code == -1);
  CHECK(told == 1);
  rank->break_with({.message = "said by the head"});
  CHECK_THROWS_AS(rank->advance("counter", 1, {}), GangBroken);
  CHECK(rank->why_broken().message == "rank 0 is gone: process 7 was lost with node 2");
  CHECK(told == 1);
}

}  // namespace rank_context_test
