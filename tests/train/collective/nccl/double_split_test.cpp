// Splits of a communicator as only a double of NCCL can have them.
#include <troupe/train/communicator.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <troupe/errors.hpp>

#include "collective/background_reductions.hpp"
#include "collective/nccl/double_rank.hpp"
#include "guard.hpp"
#include "support/nccl_double/nccl_double.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
using namespace std::chrono_literals;
using troupe::test::kGuard;

TEST_CASE("a split of NCCL waits for averages in the background, and takes its time",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(3).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            auto& background = background_of(*comm);
            nccl_double::behave({.init_takes = 50ms, .operations_take = 20ms});
            const Filled filled;
            const OnDevice data(std::vector<float>(7, static_cast<float>(context.rank())));
            background.begin_average(data.data(), 7, DataType::Float32, filled.now());
            background.begin_average(data.data(), 7, DataType::Float32, filled.now());
            auto part = comm->split(context.rank() % 2, -context.rank());
            expect(part->size() == (context.rank() == 1 ? 1 : 2), "the ranks of one color");
            expect(part->rank() == (context.rank() == 0 ? 1 : 0), "in the order of keys");
            expect(data.values() == std::vector<float>(7, 1), "the averages");
            check_sum(*part, 1000);
            check_sum(*comm, 1000);
            check_sum(*part->split(0, 0), 10);
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("two communicators of NCCL split at the same time, each in a thread",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          {
            auto first = over_double(context, kGuard, "first");
            auto second = over_double(context, kGuard, "second");
            nccl_double::behave({.init_takes = 50ms});
            std::unique_ptr<Communicator> of_second;
            std::thread other([&] { of_second = second->split(0, context.rank()); });
            auto of_first = first->split(0, -context.rank());
            other.join();
            expect(of_first->rank() == 1 - context.rank(), "the order of the first's keys");
            expect(of_second->rank() == context.rank(), "the order of the second's keys");
            for (auto* comm : {of_first.get(), of_second.get(), first.get(), second.get()})
              check_sum(*comm, 1000);
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("a split that NCCL never completes ends at its deadline, and its process can go on",
          "[train][collective][nccl][hang][double]") {
  std::chrono::milliseconds wait = 2s;
  const std::string expected = "in split, call 2; every rank has come, but the call does not end";
  const auto outcomes = run_with_longer_waits(
      ForkedGang::on_one_node(2), wait,
      [&](GangContext& context) {
        std::string error;
        {
          auto comm = over_double(context, wait);
          comm->barrier();
          nccl_double::behave({.init_ends = false});
          error = thrown_by<Error>([&] { comm->split(0, 0); });
          expect(thrown_by<Error>([&] { comm->barrier(); }) == error, "it ends the communicator");
        }
        expect_usable(context);
        // One rank may hear of the other's end.
        if (error.find("noticed by rank") == std::string::npos)
          throw TimedOut(Failure{.kind = Failure::Kind::TimedOut, .message = error});
      },
      [&](const auto& all) { return failures(all).find(expected) != std::string::npos; });
  CHECK_THAT(failures(outcomes), Contains(expected));
}

TEST_CASE("a rank without memory for its part of a split ends the others' calls of that part",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            if (context.rank() == 1) {
              nccl_double::behave({.memory = nccl_double::device_bytes()});
              const auto error = thrown_by<Error>([&] { comm->split(0, 0); });
              expect_in(error, "rank 1: device memory for the barrier failed: out of memory");
              nccl_double::behave({});
            } else {
              auto part = comm->split(0, 0);
              const auto error = thrown_by<GangBroken>([&] { part->barrier(); });
              expect_in(error, "rank 1: device memory for the barrier failed: out of memory");
              expect_in(error, "noticed by rank 0 in barrier, call 1");
            }
            check_sum(*comm, 1000);
          }
          expect_usable(context);
        })) == "");
}
