// Ends of a communicator, by a deadline, an abort or a rank that is gone, as only a double of NCCL
// can have them.
#include <troupe/train/communicator.hpp>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>
#include <catch2/catch.hpp>
#include <troupe/errors.hpp>

#include "collective/nccl/double_rank.hpp"
#include "guard.hpp"
#include "support/nccl_double/nccl_double.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
using namespace std::chrono_literals;
using troupe::test::kGuard;

TEST_CASE("a call of NCCL that never completes ends at its deadline, though every rank has come",
          "[train][collective][nccl][hang][double]") {
  std::chrono::milliseconds wait = 2s;
  const std::string expected =
      "in all_reduce of 5 float32 (average), call 2; every rank has come, but the call does not "
      "end";
  const auto outcomes = run_with_longer_waits(
      ForkedGang::on_one_node(2), wait,
      [&](GangContext& context) {
        std::string error;
        {
          auto comm = over_double(context, wait);
          comm->barrier();
          if (context.rank() == 1) nccl_double::behave({.operations_end = false});
          error = thrown_by<Error>([&] { check_sum(*comm, 5); });
        }
        expect_usable(context);
        // One rank may hear of the other's end.
        if (error.find("noticed by rank") == std::string::npos)
          throw TimedOut(Failure{.kind = Failure::Kind::TimedOut, .message = error});
      },
      [&](const auto& all) { return failures(all).find(expected) != std::string::npos; });
  CHECK_THAT(failures(outcomes), Contains(expected));
}

TEST_CASE("a call of NCCL names the rank that is missing, not one that waits for it",
          "[train][collective][nccl][hang][double]") {
  std::chrono::milliseconds wait = 500ms;
  const std::string expected = "in barrier, call 3; rank 1 did not come";
  const auto outcomes = run_with_longer_waits(
      ForkedGang::on_one_node(3), wait,
      [&](GangContext& context) {
        {
          auto comm = over_double(context, wait);
          comm->barrier();
          if (context.rank() == 1) return await_leaving(context);
          const Leaving leaving(context, 1);
          const OnDevice data(std::vector<float>(5, 1));
          // Of a broadcast from rank 0, rank 2 gets its part; the next call waits.
          comm->broadcast(data.data(), 5, DataType::Float32, 0);
          comm->barrier();
        }
      },
      [&](const auto& all) { return failures(all).find(expected) != std::string::npos; });
  INFO(failures(outcomes));
  CHECK_THAT(failures(outcomes), Contains(expected));
  CHECK(failures({outcomes[1]}) == "");
}

TEST_CASE("a message that no rank sends over NCCL names the rank at its deadline",
          "[train][collective][nccl][hang][double]") {
  std::chrono::milliseconds wait = 500ms;
  const std::string expected = "message 0; rank 1 did not come";
  const auto outcomes = run_with_longer_waits(
      ForkedGang::on_one_node(2), wait,
      [&](GangContext& context) {
        const Leaving leaving(context, 1);
        auto comm = over_double(context, wait);
        if (context.rank() == 1) return await_leaving(context);
        const Numbers data({1, 2, 3});
        comm->recv(data.data(), 3, DataType::Int32, 1);
      },
      [&](const auto& all) { return all[0].message.find(expected) != std::string::npos; });
  CHECK(outcomes[0].type == "TimedOut");
  CHECK_THAT(outcomes[0].message, Contains(expected));
}

TEST_CASE("a rank that aborts its call of NCCL ends the others', and all processes can go on",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            comm->barrier();
            nccl_double::behave({.operations_end = false});
            std::thread other;
            if (context.rank() == 1) {
              other = std::thread([&] { comm->abort("enough"); });
            }
            const auto error = thrown_by<GangBroken>([&] { comm->barrier(); });
            if (other.joinable()) other.join();
            expect_in(error, "rank 1 ended the communicator: enough (noticed by rank");
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("a rank that aborts and then closes its NCCL communicator ends the others' call",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            comm->barrier();
            if (context.rank() == 1) {
              comm->abort("enough");
              comm.reset();
              await_leaving(context);
            } else {
              const Leaving leaving(context, 1);
              const auto error = thrown_by<GangBroken>([&] { comm->barrier(); });
              expect_in(error, "rank 1 ended the communicator: enough (noticed by rank 0");
            }
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("a rank that closes its NCCL communicator ends the others' call",
          "[train][collective][nccl][double]") {
  const bool by_exception = GENERATE(false, true);
  CHECK(failures(ForkedGang::on_one_node(2).run([by_exception](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            comm->barrier();
            if (context.rank() == 1) {
              try {
                const auto held = std::move(comm);
                if (by_exception) throw std::runtime_error("a step failed");
              } catch (const std::runtime_error&) {
              }
              await_leaving(context);
            } else {
              const Leaving leaving(context, 1);
              const auto error = thrown_by<GangBroken>([&] { comm->barrier(); });
              expect_in(error, by_exception ? "rank 1 has closed its communicator, as an exception "
                                              "left the function that held it (noticed by rank 0"
                                            : "rank 1 has closed its communicator (noticed by");
            }
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("a rank that is killed and whose death nobody tells is named at the deadline",
          "[train][collective][nccl][double]") {
  auto gang = ForkedGang::on_one_node(2);
  gang.announce_deaths = false;
  std::chrono::milliseconds wait = 500ms;
  const std::string expected = "in barrier, call 2; rank 1 did not come";
  const auto outcomes = run_with_longer_waits(
      gang, wait,
      [&](GangContext& context) {
        auto comm = over_double(context, wait);
        comm->barrier();
        if (context.rank() == 1) ::kill(::getpid(), SIGKILL);
        comm->barrier();
      },
      [&](const auto& all) { return all[0].message.find(expected) != std::string::npos; });
  CHECK(outcomes[0].type == "TimedOut");
  CHECK_THAT(outcomes[0].message, Contains(expected));
  CHECK(outcomes[1].signal == SIGKILL);
}

TEST_CASE("a rank that is killed and that NCCL misses ends the call with NCCL's words",
          "[train][collective][nccl][double]") {
  auto gang = ForkedGang::on_one_node(2);
  gang.announce_deaths = false;
  const auto outcomes = gang.run([](GangContext& context) {
    nccl_double::behave({.notices_lost_ranks = true});
    auto comm = over_double(context, kGuard);
    comm->barrier();
    if (context.rank() == 1) ::kill(::getpid(), SIGKILL);
    comm->barrier();
  });
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message,
             Contains("barrier, call 2 failed in NCCL: remote process exited or there was a "
                      "network error: a rank closed its connection"));
  CHECK(outcomes[1].signal == SIGKILL);
}

TEST_CASE("a communicator that NCCL does not finalize is aborted after a while",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            check_sum(*comm, 10);
            nccl_double::behave({.finalize_ends = false});
          }
          expect_usable(context);
        })) == "");
}
