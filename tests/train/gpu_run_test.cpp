// Runs on GPUs that the cluster finds, of programs that have used CUDA before and of others.
#include <troupe/train.hpp>

#include <cstdlib>
#include <string>

#include <torch/utils.h>

#include "run_tests.hpp"
#include "support/catch.hpp"
#include "support/one_gpu.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr const char* kEarly = "TROUPE_TEST_EARLY_CUDA";
bool has_gpu = false;

struct Seen {
  std::string device;
  std::string gpus;            ///< CUDA_VISIBLE_DEVICES
  double least = 0, most = 0;  ///< of sums over the ranks, each of which adds 1 and its number
};

Seen look(train::Context& ctx, const bool& alone) {
  if (!alone) share_one_gpu(ctx.rank());
  torch::manual_seed(1);
  const auto data = torch::full({1000}, ctx.rank() + 1.0, ctx.device());
  ctx.communicator().all_reduce(data.data_ptr(), 1000, train::DataType::Float32,
                                train::ReduceOp::Sum);
  return {.device = ctx.device().str(),
          .gpus = std::getenv("CUDA_VISIBLE_DEVICES"),
          .least = data.min().item<double>(),
          .most = data.max().item<double>()};
}

void check_runs() {
  const bool alone = GENERATE(true, false);
  const auto result = train::run<look>(alone, {.workers = alone ? 1 : 2,
                                               .each = {.gpus = alone ? 1 : 0.5},
                                               .where = train::Where::ThisNode});
  CHECK(result.value->device == "cuda:0");
  CHECK(result.value->gpus.starts_with("GPU-"));
  CHECK(result.value->gpus.find(',') == std::string::npos);
  CHECK(result.value->least == (alone ? 1 : 3));
  CHECK(result.value->most == (alone ? 1 : 3));
}

bool skipped() {
  if (has_gpu) return false;
  WARN("skipped: no CUDA device is visible to this process");
  return true;
}

}  // namespace

TEST_CASE("the ranks of a run train on the GPU that they were given", "[train][run][gpu]") {
  if (!skipped()) check_runs();
}

TEST_CASE("a rank without GPUs trains on the CPU of a machine with GPUs", "[train][run][gpu]") {
  if (skipped()) return;
  const auto result = train::run<look>(true, {.where = train::Where::ThisNode});
  CHECK(result.value->device == "cpu");
  CHECK(result.value->gpus.empty());
}

TEST_CASE("a program that has used CUDA before troupe::init trains on GPUs", "[train][run][gpu]") {
  if (skipped()) return;
  torch::manual_seed(7);
  check_runs();
}

TEST_CASE("a program whose main uses CUDA on each node before troupe::init trains on GPUs",
          "[train][run][gpu]") {
  if (skipped()) return;
  ::setenv(kEarly, "1", 1);
  torch::manual_seed(7);
  check_runs();
}

int main(int argc, char** argv) {
  if (std::getenv("TROUPE_BOOT") != nullptr) {
    if (std::getenv(kEarly) != nullptr) torch::manual_seed(7);
    const auto never = troupe::init(argc, argv);
    return 1;
  }
  has_gpu = sees_gpu();
  return troupe::test::run_tests(argc, argv);
}
