// Trainings in bfloat16 and float16 on a GPU that the ranks share: autocast, the loss scale and
// master weights, against one process on the GPU.
#include <troupe/train/context.hpp>

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "support/gpu_rank.hpp"
#include "support/one_gpu.hpp"

#include "master_weights_checks.hpp"
#include "scaled_training.hpp"

using namespace master_weights_training;

namespace {

// Adam's steps are of 0.01, and there are six of them.
constexpr double kLessThanAStep = 5e-3;

}  // namespace

TEST_CASE("on a GPU operators under autocast compute in the smaller type",
          "[train][precision][gpu]") {
  if (skipped_without_gpu()) return;
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 3);
  CAPTURE(static_cast<int>(type), stage);
  CHECK(run_on_gpu(2, options_of(type, stage), [&](Context& ctx) { expect_autocast(ctx, type); }) ==
        "");
}

TEST_CASE("on a GPU a loss scale that is a power of two changes nothing in a training",
          "[train][precision][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  const KeptValues plain;
  CHECK(run_on_gpu(2, options_of(Type::Float32, stage),
                   [&](Context& ctx) { plain.keep(ctx, train_scaled(ctx)); }) == "");
  CHECK(run_on_gpu(2, options_of(Type::Float16, stage, {.initial = 1024, .window = 2}),
                   [&](Context& ctx) {
                     plain.expect_same_as(train_scaled(ctx), 1e-12, "scaled");
                     expect(ctx.loss_scale() == 4096, "it was doubled twice");
                   }) == "");
}

TEST_CASE("on a GPU a gradient of one rank that is not finite has all ranks leave the step out",
          "[train][precision][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const int stage = GENERATE(0, 1, 2, 3);
  const auto wrong = GENERATE(std::numeric_limits<double>::infinity(), std::nan(""));
  CAPTURE(stage, wrong);
  CHECK(run_on_gpu(3, options_of(Type::Float16, stage, {.initial = 1024, .hysteresis = 1}),
                   [&](Context& ctx) { expect_step_left_out(ctx, wrong); }) == "");
}

TEST_CASE("on a GPU a training with master weights is about the one written out by hand",
          "[train][precision][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(static_cast<int>(type), stage);
  CHECK(run_with_storage(run_on_gpu, 2, options_with_masters(type, stage),
                         [&](Context& ctx, const fs::path& storage) {
                           expect_trained_as_by_hand(ctx, type, storage, kLessThanAStep);
                         }) == "");
}

TEST_CASE("on a GPU gradients of parameters with master weights are clipped by their norm",
          "[train][precision][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(static_cast<int>(type), stage);
  CHECK(run_with_storage(run_on_gpu, 2, options_with_masters(type, stage),
                         [&](Context& ctx, const fs::path& storage) {
                           expect_masters_clipped(ctx, type, storage, 1e-3);
                         }) == "");
}

TEST_CASE("on a GPU a step of float16 that is left out leaves the master weights as they were",
          "[train][precision][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  CHECK(run_with_storage(run_on_gpu, 2, options_with_masters(Type::Float16, stage),
                         [&](Context& ctx, const fs::path& storage) {
                           expect_masters_left_as_they_were(ctx, storage, kLessThanAStep);
                         }) == "");
}

TEST_CASE("on a GPU master weights keep what the smaller type would lose",
          "[train][precision][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  if (stage < 2) {
    CHECK(run_on_gpu(2, options_with_masters(Type::BFloat16, stage), expect_small_updates_add_up) ==
          "");
  }
  CHECK(run_with_storage(run_on_gpu, 2, options_with_masters(Type::Float16, stage),
                         expect_small_gradient_kept) == "");
}
