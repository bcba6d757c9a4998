// Trainings on a GPU that the ranks share, whose optimizer or parameters lie in main memory, and
// trainings for which the GPU has too little.
#include <troupe/train/context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/gpu_rank.hpp"
#include "support/one_gpu.hpp"
#include "support/parameter_values.hpp"

#include "full_memory_training.hpp"
#include "offload_training.hpp"

using namespace offload_training;

namespace {

/// Of the GPU, in bytes.
std::size_t free_bytes_of_gpu() {
  std::size_t free = 0, all = 0;
  expect(cudaMemGetInfo(&free, &all) == cudaSuccess, "how much memory is free");
  return free;
}

/// Takes the rest of the GPU's memory, in few pieces, as long as the process lives.
void leave_free_on_gpu(std::int64_t bytes) {
  constexpr std::size_t kSmallestPiece = 2 << 20;
  const auto rest = [&] {
    const auto free = free_bytes_of_gpu(), left = static_cast<std::size_t>(bytes);
    return free - std::min(free, left);
  };
  for (auto piece = rest(); piece >= kSmallestPiece; piece = std::min(piece, rest())) {
    void* ballast = nullptr;
    if (cudaMalloc(&ballast, piece) == cudaSuccess) continue;
    cudaGetLastError();  // forgets it
    piece /= 2;
  }
}

}  // namespace

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

TEST_CASE("where a GPU is too small for one rank the error says what takes less of it",
          "[train][plan][placement][gpu][timing]") {  // alone, as it leaves others no memory
  if (skipped_without_gpu()) return;
  for (const auto free_bytes : full_memory_training::kTooLittle) {
    CAPTURE(free_bytes);
    CHECK(failures(ForkedGang::on_one_node(1).run([&](GangContext& gang) {
            full_memory_training::expect_advice_of_one_rank(gang, leave_free_on_gpu, free_bytes);
          })) == "");
  }
}
