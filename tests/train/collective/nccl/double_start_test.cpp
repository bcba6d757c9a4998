// Starts of a communicator as only a double of NCCL can have them.
#include <troupe/train/communicator.hpp>

#include <chrono>
#include <string>

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

TEST_CASE("a start and calls of NCCL that take their time are polled until they are complete",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          nccl_double::behave(
              {.init_takes = 300ms, .enqueuing_takes = 5ms, .operations_take = 10ms});
          const auto start = std::chrono::steady_clock::now();
          {
            auto comm = over_double(context, kGuard);
            expect(std::chrono::steady_clock::now() - start >= 300ms, "the start has completed");
            for (int call = 0; call < 5; ++call) check_sum(*comm, 1000);
            comm->barrier();
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("the deadline of a start of NCCL names the rank that does not come",
          "[train][collective][nccl][double]") {
  const int absent = GENERATE(0, 2);
  std::chrono::milliseconds wait = 500ms;
  const auto expected =
      "in start of the communicator; rank " + std::to_string(absent) + " did not come";
  const auto is_named = [&](const Outcome& outcome) {
    return outcome.type == "TimedOut" && outcome.message.find(expected) != std::string::npos;
  };
  const auto outcomes = run_with_longer_waits(
      ForkedGang::on_one_node(3), wait,
      [&](GangContext& context) {
        if (context.rank() == absent) return await_leaving(context);
        const Leaving leaving(context, absent);
        over_double(context, wait);
      },
      [&](const auto& all) { return is_named(all[1]) || is_named(all[absent == 0 ? 2 : 0]); });
  INFO(failures(outcomes));
  CHECK((is_named(outcomes[1]) || is_named(outcomes[absent == 0 ? 2 : 0])));
  CHECK(failures({outcomes[static_cast<std::size_t>(absent)]}) == "");
}

TEST_CASE("a start that NCCL never completes ends at its deadline, and its process can go on",
          "[train][collective][nccl][double]") {
  std::chrono::milliseconds wait = 500ms;
  const std::string expected =
      "in start of the communicator; every rank has come, but the call does not end";
  const auto outcomes = run_with_longer_waits(
      ForkedGang::on_one_node(2), wait,
      [&](GangContext& context) {
        nccl_double::behave({.init_ends = false});
        const auto error = thrown_by<Error>([&] { over_double(context, wait); });
        expect_usable(context);
        // One rank may hear of the other's end.
        if (error.find(expected) == std::string::npos)
          expect_in(error, "noticed by rank");
        else
          throw TimedOut(Failure{.kind = Failure::Kind::TimedOut, .message = error});
      },
      [](const auto& all) { return all[0].type == "TimedOut" || all[1].type == "TimedOut"; });
  const auto& late = outcomes[outcomes[0].type == "TimedOut" ? 0 : 1];
  INFO(failures(outcomes));
  CHECK_THAT(late.message, Contains(expected));
}

TEST_CASE("a rank that cannot start over NCCL ends the start of the others with its reason",
          "[train][collective][nccl][double]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    if (context.rank() == 1) nccl_double::behave({.memory = 3});
    const Leaving leaving(context, 1);
    const auto stay = [&] {
      if (context.rank() == 1) await_leaving(context);
    };
    try {
      over_double(context, kGuard);
    } catch (const Error&) {
      stay();
      throw;
    }
  });
  const std::string reason =
      "rank 1: device memory for the barrier failed: out of memory (cudaErrorMemoryAllocation)";
  CHECK(outcomes[1].type == "other");
  CHECK(outcomes[1].message == reason);
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message,
             Contains(reason + " (noticed by rank 0 in start of the communicator"));
}

TEST_CASE("two ranks of a host on one GPU are refused with NCCL's reason",
          "[train][collective][nccl][double]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& context) {
    make_nccl_communicator(context, {.timeout = kGuard, .device = 0});
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.type << " " << outcome.message);
    CHECK_THAT(outcome.message,
               Contains("start of the communicator failed in NCCL: invalid usage: Duplicate GPU"));
  }
  CHECK((outcomes[0].type == "invalid_argument" || outcomes[1].type == "invalid_argument"));
}

TEST_CASE("each rank has the GPU of its local rank, and one without is refused",
          "[train][collective][nccl][double]") {
  const int devices = GENERATE(1, 2);
  const auto outcomes = ForkedGang::on_one_node(2).run([devices](GangContext& context) {
    nccl_double::behave({.devices = devices});
    check_sum(*make_nccl_communicator(context, {.timeout = kGuard}), 1000);
  });
  if (devices == 2) {
    CHECK(failures(outcomes) == "");
    return;
  }
  const std::string reason = "rank 1 is to use GPU 1, and this process sees 1: ";
  CHECK(outcomes[1].type == "Impossible");
  CHECK_THAT(outcomes[1].message, Contains(reason));
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains(reason));
}

TEST_CASE("a process that sees no GPU, or was forked from one that has used one, is told so",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext&) {
          int count = 0;
          expect(cudaGetDeviceCount(&count) == cudaSuccess && count == 1, "one device");
          const auto outcomes = ForkedGang::on_one_node(1).run(
              [](GangContext& gang) { make_nccl_communicator(gang, {}); });
          expect(outcomes[0].type == "Impossible", "a forked process can use none");
          expect_in(outcomes[0].message, "initialization error");
        })) == "");
  const auto outcomes = ForkedGang::on_one_node(1).run([](GangContext& gang) {
    nccl_double::behave({.devices = 0});
    make_nccl_communicator(gang, {});
  });
  CHECK(outcomes[0].type == "Impossible");
  CHECK_THAT(outcomes[0].message, Contains("no CUDA device is visible to this process: no "
                                           "CUDA-capable device is detected (rank 0)"));
}
