#include <troupe/train/communicator.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "collective/call.hpp"
#include "collective/holdings.hpp"
#include "guard.hpp"
#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

constexpr std::chrono::milliseconds kShort{300};

/// Throws what make_host_communicator throws, once nothing of the communicator is left.
void fail_to_start(GangContext& gang, const HostOptions& options) {
  const Leaving leaving(gang, -1);
  const auto before = holdings();
  std::exception_ptr thrown;
  try {
    make_host_communicator(gang, options);
  } catch (const std::exception&) {
    thrown = std::current_exception();
  }
  expect(thrown != nullptr, "no communicator");
  const auto after = holdings();
  expect(before == after, [&] {
    return fmt::format("nothing left behind: {} more descriptors, {} more threads, {} mappings",
                       after.descriptors - before.descriptors, after.threads - before.threads,
                       after.mappings);
  });
  std::rethrow_exception(thrown);
}

/// For the last rank, which lives until the others have left: that a process ends is another case.
void stay(GangContext& gang) {
  for (int rank = 0; rank + 1 < gang.size(); ++rank)
    gang.rendezvous().get(fmt::format("left/{}", rank), troupe::test::kGuard);
}

bool is_last(GangContext& gang) { return gang.rank() == gang.size() - 1; }

std::vector<ForkedGang> starting_gangs() {
  return {ForkedGang::on_one_node(2), ForkedGang::on_one_node(3), ForkedGang::on_nodes(2, 2),
          ForkedGang::on_nodes(3, 2), ForkedGang::on_nodes(5, 3)};
}

/// The ranks but the last one have failed: by their own deadline or by what another rank has told.
void check_all_but_last(const std::vector<Outcome>& outcomes, const std::string& message) {
  for (std::size_t r = 0; r + 1 < outcomes.size(); ++r) {
    INFO("rank " << r << ": " << outcomes[r].type << " " << outcomes[r].message);
    CHECK((outcomes[r].type == "TimedOut" || outcomes[r].type == "GangBroken"));
    CHECK_THAT(outcomes[r].message, Contains(message));
  }
}

}  // namespace

TEST_CASE("a start that waits in vain for a rank leaves nothing behind",
          "[train][collective][failed_start]") {
  const auto gang = GENERATE(from_range(starting_gangs()));
  const auto outcomes = gang.run([](GangContext& context) {
    if (is_last(context)) return stay(context);
    fail_to_start(context, {.timeout = kShort});
  });
  check_all_but_last(outcomes, "start of the communicator");
  CHECK(failures({outcomes.back()}) == "");
}

TEST_CASE("a start that a rank declines leaves nothing behind",
          "[train][collective][failed_start]") {
  const auto gang = GENERATE(from_range(starting_gangs()));
  const auto outcomes = gang.run([](GangContext& context) {
    if (!is_last(context)) return fail_to_start(context, {.timeout = troupe::test::kGuard});
    decline(context, "host", "has no time");
    stay(context);
  });
  check_all_but_last(outcomes, "has no time");
  CHECK(failures({outcomes.back()}) == "");
}

TEST_CASE("a start on an address of another machine leaves nothing behind",
          "[train][collective][failed_start]") {
  const auto gang = GENERATE(ForkedGang::on_nodes(2, 2), ForkedGang::on_nodes(4, 2));
  const auto outcomes = gang.run([](GangContext& context) {
    fail_to_start(context, {.timeout = troupe::test::kGuard, .address = "203.0.113.7"});
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.type << " " << outcome.message);
    CHECK(outcome.threw);
    CHECK_THAT(outcome.message, Contains("203.0.113.7"));
  }
}

TEST_CASE("a start with options that differ leaves nothing behind",
          "[train][collective][failed_start]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    const std::size_t chunk = context.rank() == 0 ? 4096 : 8192;
    fail_to_start(context, {.timeout = kShort, .chunk_bytes = chunk});
  });
  CHECK(outcomes[0].type == "TimedOut");
  CHECK_THAT(outcomes[1].message, Contains("the same options"));
}

TEST_CASE("ranks that complete a start learn that another one has given it up meanwhile",
          "[train][collective][failed_start]") {
  const auto outcomes = ForkedGang::on_one_node(3).run([](GangContext& context) {
    auto& rendezvous = context.rendezvous();
    if (context.rank() == 1) {
      rendezvous.get("collective/host/group/node0", troupe::test::kGuard);
      bool gave_up = false;
      try {
        make_host_communicator(context, {.timeout = kShort});
      } catch (const TimedOut&) {
        gave_up = true;
      }
      expect(gave_up, "rank 1 gives up");
      rendezvous.set("given up", "1");
      rendezvous.get("left/0", troupe::test::kGuard);
      rendezvous.get("left/2", troupe::test::kGuard);
      return;
    }
    const Leaving leaving(context, -1);
    if (context.rank() == 2) rendezvous.get("given up", troupe::test::kGuard);
    make_host_communicator(context, {.timeout = troupe::test::kGuard})->barrier();
  });
  CHECK(failures({outcomes[1]}) == "");
  for (int rank : {0, 2}) {
    const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    CHECK(outcome.type == "GangBroken");
    CHECK_THAT(outcome.message, Contains("rank 1 waited 0.3 s in start of the communicator"));
  }
}
