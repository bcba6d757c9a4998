// What train::plan predicts, beside what trainings take of a device's memory.
#include <troupe/train/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <troupe/detail/trainable/trainable_worker.hpp>
#include <troupe/train/context.hpp>

#include "guard.hpp"
#include "parallel/device.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/other_device.hpp"
#include "support/rank_contexts.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

#include "full_memory_training.hpp"

using namespace full_memory_training;

namespace {

constexpr std::int64_t kWidth = Size{}.width;
constexpr std::int64_t kLayers = Size{}.layers;
constexpr std::int64_t kElements = kLayers * kWidth * (kWidth + 1);
constexpr std::size_t kBucketBytes = 400'000;
/// Of what autograd keeps for backward: more than that.
constexpr std::int64_t kActivations = 8 * kLayers * kRowsOfBatch * kWidth * 4;

ContextOptions small_parts(const ZeroOptions& zero, bool has_masters) {
  ContextOptions options;
  options.timeout = test::kGuard;
  options.data_parallel = {.first_bucket_bytes = 100'000, .bucket_bytes = kBucketBytes};
  options.zero = zero;
  if (has_masters)
    options.mixed_precision = {.type = MixedPrecision::Type::BFloat16, .master_weights = true};
  return options;
}

double train_and_fail(Context& ctx, const int& /*config*/) {
  train_steps(ctx);
  throw std::runtime_error("no more rows");
}

/// -> failures() of the ranks.
std::string run_beside_plan(const PlannedStrategy& planned, const PlanOptions& options) {
  const bool has_masters = options.mixed_precision.master_weights;
  const auto compare = [&](Context& ctx) {
    forget_other_peak();
    train_steps(ctx);
    const auto predicted = static_cast<std::int64_t>(planned.device.total());
    const auto taken = other_peak_bytes();
    const auto of_buckets = 5 * static_cast<std::int64_t>(kBucketBytes);
    // With stage 3 nothing bounds the gradients that wait to be reduced, but for their number.
    const auto most = predicted + kActivations + (planned.zero.stage == 3 ? 4 * kElements : 0);
    expect(taken <= most && predicted <= taken + taken / 10 + of_buckets, [&] {
      return fmt::format("the most on the device: {} bytes, predicted {}", taken, predicted);
    });
  };
  return run(options.ranks, small_parts(planned.zero, has_masters), compare, {}, other_device());
}

}  // namespace

TEST_CASE("a training takes what the plan predicts of its device's memory",
          "[train][plan][placement]") {
  const ModelSize model{.trained = kElements, .largest = kWidth * kWidth};
  for (const bool has_masters : {false, true}) {
    for (const int ranks : {1, 2, 3}) {
      const auto like = small_parts({}, has_masters);
      const auto plan = train::plan(model, {.ranks = ranks,
                                            .device = PlanOptions::Device::Gpu,
                                            .device_memory = 1'000'000'000,
                                            .mixed_precision = like.mixed_precision,
                                            .data_parallel = like.data_parallel});
      for (const auto& strategy : plan.strategies) {
        INFO(
            fmt::format("{} ranks, stage {}, optimizer in main memory {}, parameters too {}, "
                        "master weights {}",
                        ranks, strategy.zero.stage, strategy.zero.offload_optimizer,
                        strategy.zero.offload_parameters, has_masters));
        CHECK(run_beside_plan(strategy, plan.options) == "");
      }
    }
  }
}

TEST_CASE("where a device's memory is full the error says what would fit",
          "[train][plan][placement]") {
  struct Case {
    ZeroOptions zero;
    std::int64_t limit;
    std::string advice;
  };
  for (const auto& of : std::vector<Case>{
           {{.stage = 0},
            15'000'000,
            "on 2 ranks of one node, .zero = {.stage = 0} takes 0.02 GB of the 0.01 GB of hpu:0, "
            "beside activations. Use .zero = {.stage = 3}, which takes 0.01 GB."},
           // Within prepare().
           {{.stage = 0},
            3'000'000,
            "beside activations. Nothing fits. The strategy nearest to fitting is"},
           // Tensors of the function fill it.
           {{.stage = 2},
            40'000'000,
            "beside activations. Use .zero = {.stage = 3}, which takes 0.01 GB, or a smaller "
            "batch."}}) {
    INFO(of.advice);
    CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
            use_device(other_device());
            limit_other_memory(of.limit);
            TestMember member(gang, {}, {}, small_parts(of.zero, false));
            const auto error = error_where_full<train_and_fill>(member, {.filler = 10'000'000});
            if (error.empty()) return;
            expect(error.find("By train::plan, with Adam ") != std::string::npos &&
                       error.find(of.advice) != std::string::npos,
                   [&] { return "the error is: " + error; });
          })) == "");
  }
}

TEST_CASE("where a device is too small for one rank the error says what takes less of it",
          "[train][plan][placement]") {
  for (const auto free_bytes : kTooLittle) {
    CAPTURE(free_bytes);
    CHECK(failures(ForkedGang::on_one_node(1).run([&](GangContext& gang) {
            use_device(other_device());
            limit_other_memory(1'000'000'000);
            torch::Tensor ballast;  // memory that nobody touches
            expect_advice_of_one_rank(
                gang,
                [&](std::int64_t bytes) {
                  ballast = torch::empty({1'000'000'000 - other_bytes() - bytes},
                                         torch::dtype(torch::kUInt8).device(other_device()));
                },
                free_bytes);
          })) == "");
  }
}

TEST_CASE("an error of another kind stays as it is", "[train][plan][placement]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext& gang) {
          TestMember member(gang, {}, {}, small_parts({}, false));
          std::string error;
          try {
            troupe::detail::ResultSlot<double> result;
            troupe::detail::run_trainable<train_and_fail>(member, 0, result);
          } catch (const std::runtime_error& failed) {
            error = failed.what();
          }
          expect(error == "no more rows", error);
        })) == "");
}
