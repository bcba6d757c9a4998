// The order of what NCCL's calls do, and their errors, as only a double of NCCL can have them.
#include <troupe/train/communicator.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <catch2/catch.hpp>
#include <troupe/errors.hpp>

#include "collective/background_reductions.hpp"
#include "collective/nccl/double_rank.hpp"
#include "guard.hpp"
#include "support/nccl_double/nccl_double.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using namespace std::chrono_literals;
using nccl_double::Fault;
using troupe::test::kGuard;

namespace {

/// Rank r has 3 * r in each element, so that the average of two ranks is 1.5.
std::vector<float> threes(const GangContext& gang, std::size_t count) {
  return std::vector<float>(count, static_cast<float>(3 * gang.rank()));
}

}  // namespace

TEST_CASE("an NCCL call begins when what is on the default stream before it is done",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          auto comm = over_double(context, kGuard);
          const OnDevice data(std::vector<std::int32_t>(1000, 0));
          nccl_double::behave({.copies_take = 50ms});
          expect(cudaMemset(data.data(), 1, 4000) == cudaSuccess, "a fill that returns early");
          comm->all_reduce(data.data(), 1000, DataType::Int32, ReduceOp::Sum);
          expect(data.values() == std::vector<std::int32_t>(1000, 0x02020202), "the sums");
        })) == "");
}

TEST_CASE("an average in the background begins when its buffer is filled",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          auto comm = over_double(context, kGuard);
          auto& background = background_of(*comm);
          const Filled filled;
          const OnDevice first(std::vector<float>(1000, 7)), second(std::vector<float>(1000, 7));
          nccl_double::behave({.copies_take = 50ms});
          for (const auto* data : {first.data(), second.data()}) {
            expect(cudaMemset(const_cast<void*>(data), 0, 4000) == cudaSuccess, "a late fill");
            background.begin_average(const_cast<void*>(data), 1000, DataType::Float32,
                                     filled.now());
          }
          background.complete();
          expect(first.values() == std::vector<float>(1000, 0), "the first average");
          expect(second.values() == std::vector<float>(1000, 0), "the second average");
        })) == "");
}

TEST_CASE("averages in the background are begun before other ranks come, and end in their order",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          auto comm = over_double(context, kGuard);
          auto& background = background_of(*comm);
          nccl_double::behave({.enqueuing_takes = 2ms, .operations_take = 5ms});
          const Filled filled;
          const OnDevice a(threes(context, 5)), b(threes(context, 70'001)), c(threes(context, 1));
          if (context.rank() == 1) context.rendezvous().get("begun", kGuard);
          background.begin_average(a.data(), 5, DataType::Float32, filled.now());
          background.begin_average(b.data(), 70'001, DataType::Float32, filled.now());
          background.begin_average(c.data(), 1, DataType::Float32, filled.now());
          if (context.rank() == 0) context.rendezvous().set("begun", "1");
          check_sum(*comm, 1000);  // waits for all three
          background.complete();
          expect(a.values() == std::vector<float>(5, 1.5F), "the first average");
          expect(b.values() == std::vector<float>(70'001, 1.5F), "the second average");
          expect(c.values() == std::vector<float>(1, 1.5F), "the third average");
        })) == "");
}

TEST_CASE("an error of an average in the background names that average, and ends the communicator",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            auto& background = background_of(*comm);
            const Filled filled;
            const OnDevice a(threes(context, 5)), b(threes(context, 7)), c(threes(context, 9));
            const auto begin_all = [&] {
              background.begin_average(a.data(), 5, DataType::Float32, filled.now());
              background.begin_average(b.data(), 7, DataType::Float32, filled.now());
              background.begin_average(c.data(), 9, DataType::Float32, filled.now());
            };
            if (context.rank() == 1) {
              context.rendezvous().get("begun", kGuard);
              const auto error = thrown_by<GangBroken>([&] {
                begin_all();
                background.complete();
              });
              expect_in(error, "rank 0: all_reduce of 7 float32 (average), call 2 failed");
              // In any of its calls, where it comes to them late.
              expect_in(error, "(noticed by rank 1 in all_reduce of ");
            } else {
              nccl_double::behave({.fault = {.result = ncclRemoteError,
                                             .shows = Fault::Shows::WhileRunning,
                                             .after = 1,
                                             .text = "the cable is out"}});
              begin_all();
              context.rendezvous().set("begun", "1");
              const auto error = thrown_by<GangBroken>([&] { background.complete(); });
              expect(error ==
                         "rank 0: all_reduce of 7 float32 (average), call 2 failed in NCCL: "
                         "remote process exited or there was a network error: the cable is "
                         "out",
                     error);
              expect(thrown_by<GangBroken>([&] { comm->barrier(); }) == error, "the same again");
            }
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("a call that NCCL refuses is an invalid argument with NCCL's words",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            float of_the_host = 1;
            const auto error = thrown_by<std::invalid_argument>(
                [&] { comm->all_reduce(&of_the_host, 1, DataType::Float32, ReduceOp::Sum); });
            expect(error ==
                       "rank 0: all_reduce of 1 float32 (sum), call 1 failed in NCCL: "
                       "invalid argument: what is not memory of the device",
                   error);
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("an error of the device ends a call with CUDA's words",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& context) {
          {
            auto comm = over_double(context, kGuard);
            auto& background = background_of(*comm);
            const Filled filled;
            const OnDevice data(threes(context, 5));
            nccl_double::behave({.operations_end = false});
            background.begin_average(data.data(), 5, DataType::Float32, filled.now());
            nccl_double::behave({.device_error = cudaErrorIllegalAddress});
            const auto error = thrown_by<Error>([&] { background.complete(); });
            expect(error ==
                       "rank 0: all_reduce of 5 float32 (average), call 1 failed: an illegal "
                       "memory access was encountered (cudaErrorIllegalAddress)",
                   error);
          }
          expect_usable(context);
        })) == "");
}

TEST_CASE("groups of NCCL's calls that fail in one of them end with its error",
          "[train][collective][nccl][double]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& context) {
          auto comm = over_double(context, kGuard);
          const Numbers in({1});
          std::int32_t out = 0;
          const auto error = thrown_by<std::invalid_argument>(
              [&] { comm->all_to_all(in.data(), &out, 1, DataType::Int32); });
          expect_in(error, "all_to_all of 1 int32, call 1 failed in NCCL: invalid argument");
        })) == "");
}
