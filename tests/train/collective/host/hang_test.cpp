// A call that hangs is said in the log, with who is missing, and that it went on.
#include <troupe/train/communicator.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/forked_gang.hpp"
#include "support/rank_logs.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
using namespace std::chrono_literals;
using troupe::test::kGuard;

namespace {

/// What the ranks of a gang log of a call that hangs, until one rank alone is named as missing: on
/// a slow machine the others may come to it, or answer the roll call, only after the first look.
/// Then they hang again, and for longer.
std::unique_ptr<RankLogs> logs_of_hang(
    const ForkedGang& gang, const std::string& call,
    const std::function<void(GangContext&, const RankLogs&, const HostOptions&)>& rank) {
  for (HostOptions options{.timeout = kGuard, .warn_after = 800ms};; options.warn_after *= 2) {
    auto logs = std::make_unique<RankLogs>(static_cast<int>(gang.node_ranks.size()));
    CHECK(failures(gang.run([&](GangContext& context) {
            logs->take_over(context.rank());
            rank(context, *logs, options);
          })) == "");
    const auto hangs = logs->lines(" s in " + call);
    if (hangs.empty()) return logs;
    const auto waited = hangs[0].substr(hangs[0].find(" has waited ") + 12);
    CHECK(1000ms * std::stod(waited) >= options.warn_after);
    if (hangs[0].find("ranks") == std::string::npos || options.warn_after > kGuard / 4) return logs;
  }
}

void reduce_one(Communicator& comm) {
  float x = 1;
  comm.all_reduce(std::span(&x, 1));
}

}  // namespace

TEST_CASE(
    "a collective that hangs is said once, with the rank that is missing, and that it goes on",
    "[train][collective][hang]") {
  const auto gang =
      GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 2), ForkedGang::on_nodes(3, 3));
  const auto logs =
      logs_of_hang(gang, "all_reduce",
                   [](GangContext& context, const RankLogs& log, const HostOptions& options) {
                     auto comm = make_host_communicator(context, options);
                     comm->barrier();
                     if (context.rank() == 2) log.await("in all_reduce");
                     reduce_one(*comm);
                     comm->barrier();
                   });

  const auto hangs = logs->lines("s in all_reduce");
  REQUIRE(hangs.size() == 1);
  INFO(hangs[0]);
  CHECK_THAT(hangs[0], Contains("all_reduce of 1 float32 (sum), call 2 (communicator \"host\")") &&
                           Contains("rank 2, which has not called it") && Contains("after 60 s"));
  CHECK_THAT(hangs[0], !Contains("ranks"));
  const auto ends = logs->lines("goes on: all_reduce");
  REQUIRE(ends.size() == 1);
  CHECK_THAT(ends[0], Contains("call 2 (communicator \"host\") ended after "));
  CHECK(hangs[0].substr(hangs[0].find("] rank ") + 7, 1) ==
        ends[0].substr(ends[0].find("] rank ") + 7, 1));
}

TEST_CASE("the start of a communicator that hangs is said once", "[train][collective][hang]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 3));
  const auto logs =
      logs_of_hang(gang, "start of the communicator",
                   [](GangContext& context, const RankLogs& log, const HostOptions& options) {
                     if (context.rank() == 2) log.await("in start of the communicator");
                     reduce_one(*make_host_communicator(context, options));
                   });
  const auto hangs = logs->lines("in start of the communicator");
  REQUIRE(hangs.size() == 1);
  CHECK_THAT(hangs[0], Contains("rank 2, which has not called it"));
  CHECK(logs->lines("goes on: start of the communicator").size() == 1);
}

TEST_CASE("a message that hangs is said by the rank that waits for it",
          "[train][collective][hang]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 3));
  const auto logs = logs_of_hang(
      gang, "recv", [](GangContext& context, const RankLogs& log, const HostOptions& options) {
        auto comm = make_host_communicator(context, options);
        float x = 1;
        if (context.rank() == 0) comm->recv(std::span(&x, 1), 1);
        if (context.rank() == 1) log.await("in recv");
        if (context.rank() == 1) comm->send(std::span(&x, 1), 0);
        comm->barrier();
      });
  const auto hangs = logs->lines("in recv");
  REQUIRE(hangs.size() == 1);
  CHECK_THAT(hangs[0], Contains("rank 0 has waited ") &&
                           Contains("in recv of 1 float32 from rank 1, message 0 (") &&
                           Contains(" for rank 1, which "));
  CHECK(logs->lines("rank 0 goes on: recv").size() == 1);
}

TEST_CASE("the log says nothing where no rank hangs, or where it is not to",
          "[train][collective][hang]") {
  const auto gang = GENERATE(ForkedGang::on_one_node(3), ForkedGang::on_nodes(3, 2));
  const auto warn_after = GENERATE(30'000ms, 0ms);
  const RankLogs logs(3);
  CHECK(failures(gang.run([&](GangContext& context) {
          logs.take_over(context.rank());
          auto comm =
              make_host_communicator(context, {.timeout = kGuard, .warn_after = warn_after});
          std::vector<float> data(100'000, 1);
          for (int i = 0; i < 20; ++i) comm->all_reduce(std::span(data));
          comm->barrier();
        })) == "");
  CHECK(logs.lines("rank").empty());
}
