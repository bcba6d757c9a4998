// Trainings on a GPU that the ranks share, whose optimizer or parameters lie in main memory.
#include <troupe/train/context.hpp>

#include "support/catch.hpp"
#include "support/gpu_rank.hpp"
#include "support/one_gpu.hpp"
#include "support/parameter_values.hpp"

#include "offload_training.hpp"

using namespace offload_training;

TEST_CASE("on a GPU a training whose optimizer is in main memory has the results of one without",
          "[train][zero][placement][gpu]") {
  if (skipped_without_gpu()) return;
  const auto type = GENERATE(Type::Float32, Type::BFloat16, Type::Float16);
  const int ranks = GENERATE(1, 2);
  CAPTURE(static_cast<int>(type), ranks);
  // The CPU rounds an optimizer's step otherwise, by which a gradient near 0 is another one.
  const double tolerance = type == Type::Float32 ? 1e-4 : 5e-3;
  const KeptValues without;
  CHECK(run_on_gpu(ranks, options_of({}, type),
                   [&](Context& ctx) { without.keep(ctx, trained(ctx, prepared_adam)); }) == "");
  for (const auto& zero : {optimizer_of(1), optimizer_of(2), optimizer_of(3), kParameters}) {
    CAPTURE(zero.stage, zero.offload_parameters);
    CHECK(run_on_gpu(ranks, options_of(zero, type), [&](Context& ctx) {
            without.expect_same_as(trained(ctx, prepared_adam), tolerance, "in main memory");
          }) == "");
  }
}
