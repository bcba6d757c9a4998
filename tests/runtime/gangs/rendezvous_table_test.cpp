#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "gangs/rendezvous_table.hpp"

#include "../../support/id_literals.hpp"

using namespace troupe;
using namespace troupe::runtime;
using namespace std::chrono_literals;
using Action = RendezvousRequest::Action;

namespace {

struct Table {
  RendezvousTable table;
  RendezvousTable::TimePoint now{};

  /// What it is answered, as soon as it is.
  std::shared_ptr<std::optional<Outcome>> ask(RendezvousRequest request) {
    auto answer = std::make_shared<std::optional<Outcome>>();
    table.ask(
        1_gang, std::move(request), [answer](Outcome outcome) { *answer = std::move(outcome); },
        now);
    return answer;
  }
  bool advance(std::uint64_t count, const std::string& note) {
    const auto answer = ask({.action = Action::Advance, .key = "n", .value = note, .count = count});
    return *answer && std::holds_alternative<detail::Payload>(**answer);
  }
  std::shared_ptr<std::optional<Outcome>> await(std::uint64_t count) {
    return ask({.action = Action::Await, .key = "n", .count = count, .timeout = 2s});
  }
};

std::string text(const std::shared_ptr<std::optional<Outcome>>& answer) {
  REQUIRE(*answer);
  return std::get<detail::Payload>(**answer).bytes;
}

}  // namespace

TEST_CASE("a counter answers who waits once it is there, and keeps one key for any number of steps",
          "[runtime][gangs][rendezvous]") {
  Table table;
  const auto second = table.await(2);
  const auto third = table.await(3);
  CHECK(table.advance(1, "one"));
  CHECK(!*second);
  CHECK(table.advance(2, "two"));
  CHECK(text(second) == "two");
  CHECK(!*third);
  for (std::uint64_t step = 3; step <= 200'000; ++step) REQUIRE(table.advance(step, "on"));
  CHECK(text(third) == "on");
  CHECK(text(table.await(7)).empty());  // it is beyond that
  CHECK(table.table.keys(1_gang) == 1);
  CHECK(!table.advance(5, "late"));
}

TEST_CASE("waits whose time is over do not pile up, and are answered",
          "[runtime][gangs][rendezvous]") {
  Table table;
  auto last = table.ask({.action = Action::Get, .key = "never", .timeout = 2s});
  for (int i = 0; i < 1000; ++i) {
    table.now += 3s;
    const auto next = table.ask({.action = Action::Get, .key = "never", .timeout = 2s});
    REQUIRE(*last);  // its asker keeps the call until then
    CHECK(std::get<Failure>(**last).kind == Failure::Kind::TimedOut);
    last = next;
  }
  CHECK(table.table.waiting(1_gang) <= 2);
}

TEST_CASE("who waits for ever is kept while others come to the same key",
          "[runtime][gangs][rendezvous]") {
  Table table;
  table.now += 1h;
  const auto patient = table.ask(
      {.action = Action::Get, .key = "late", .timeout = std::chrono::milliseconds::max()});
  table.ask({.action = Action::Get, .key = "late", .timeout = 2s});
  CHECK(!*patient);
  table.ask({.action = Action::Set, .key = "late", .value = "it came"});
  CHECK(text(patient) == "it came");
}

TEST_CASE("what is forgotten by its beginning is gone, and nothing else",
          "[runtime][gangs][rendezvous]") {
  Table table;
  for (const auto* key : {"run 1/a", "run 1/b", "run 10/a", "run 2/a"}) {
    table.ask({.action = Action::Set, .key = key, .value = "x"});
  }
  table.ask({.action = Action::Forget, .key = "run 1/"});
  CHECK(table.table.keys(1_gang) == 2);
  CHECK(text(table.ask({.action = Action::Get, .key = "run 10/a"})) == "x");
}

TEST_CASE("a key is written once, and the table has a limit", "[runtime][gangs][rendezvous]") {
  Table table;
  table.ask({.action = Action::Set, .key = "key", .value = "first"});
  const auto again = table.ask({.action = Action::Set, .key = "key", .value = "second"});
  REQUIRE(*again);
  CHECK(std::holds_alternative<Failure>(**again));
  for (std::size_t i = 0; i < RendezvousTable::kMostKeys; ++i) {
    table.ask({.action = Action::Get, .key = std::to_string(i), .timeout = 1s});
  }
  CHECK(table.table.keys(1_gang) == RendezvousTable::kMostKeys);
}
