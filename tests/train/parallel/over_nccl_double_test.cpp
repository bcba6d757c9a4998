// Trainings whose communicator is NCCL's, over a double of NCCL. Tensors are on other_device(),
// whose memory the double takes for a GPU's.
#include <troupe/train/context.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/adam.h>
#include <troupe/errors.hpp>

#include "parallel/device.hpp"
#include "placement/offload_training.hpp"
#include "precision/master_weights_checks.hpp"
#include "precision/scaled_training.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/nccl_double/nccl_double.hpp"
#include "support/net.hpp"
#include "support/other_device.hpp"
#include "support/parameter_values.hpp"
#include "support/rank_contexts.hpp"
#include "support/small_optimizers.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"
#include "zero/clipping_training.hpp"
#include "zero/prefetch_training.hpp"

#include "batch_norm_training.hpp"
#include "compressed_training.hpp"
#include "join_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;
using Backend = ContextOptions::Backend;

namespace {

/// A rank's context. Each rank of a node has a device of its own.
struct OverNccl {
  OverNccl(GangContext& gang, Backend backend, ContextOptions options, const Folders& folders = {})
      : member(prepared(gang), folders.storage, folders.from) {
    options.backend = backend;
    ctx.emplace(member, options);
  }
  static GangContext& prepared(GangContext& gang) {
    use_device(other_device());
    nccl_double::behave({.devices = gang.size(), .takes_any_memory = true});
    return gang;
  }
  TestMember member;
  std::optional<Context> ctx;
};

/// Runs a function in each rank of a gang. -> failures() of the ranks.
std::string run_over_nccl(int ranks, const ContextOptions& options,
                          const std::function<void(Context&)>& body, const Folders& folders = {}) {
  return failures(ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
    OverNccl rank(gang, Backend::Nccl, options, folders);
    expect(rank.ctx->device() == other_device(), "tensors of the CPU are told apart");
    expect(rank.ctx->communicator().name() == "nccl", "its backend");
    body(*rank.ctx);
  }));
}

/// How many operations of NCCL a backward calls. None of them ends before `await` were called.
int operations_of_backward(Context& ctx, Net& net, torch::optim::Optimizer& optimizer,
                           int await = 0) {
  optimizer.zero_grad();
  auto behaviour = nccl_double::behaviour();
  behaviour.operations_await = await;
  nccl_double::behave(behaviour);
  loss_of(net, ctx.rank(), ctx.world_size()).backward();
  return nccl_double::operations();
}

std::vector<torch::Tensor> trained(GangContext& gang, Backend backend, int stage) {
  OverNccl rank(gang, backend, options_with(stage));
  auto& ctx = *rank.ctx;
  expect(ctx.communicator().name() == (backend == Backend::Nccl ? "nccl" : "host"), "its backend");
  auto net = ctx.prepare(Net(kWidths));
  auto optimizer =
      ctx.prepare(torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(0.01)));
  for (std::uint64_t number = 0; number < 4; ++number) step(ctx, net, optimizer, number);
  return whole_values(ctx, net);
}

}  // namespace

TEST_CASE("a training over NCCL's calls gives what one over the host communicator gives",
          "[train][parallel][nccl][double]") {
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(stage);
  CHECK(failures(ForkedGang::on_one_node(2).run([stage](GangContext& gang) {
          const auto expected = trained(gang, Backend::Host, stage);
          const auto values = trained(gang, Backend::Nccl, stage);
          expect_same(values, expected, 0, "over NCCL");
        })) == "");
}

TEST_CASE("over NCCL's calls all averages of a backward begin before one of them is waited for",
          "[train][parallel][zero][nccl][double]") {
  const int stage = GENERATE(0, 1);
  CAPTURE(stage);
  CHECK(run_over_nccl(2, options_with(stage), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          for (std::uint64_t number = 0; number < 2; ++number) step(ctx, net, optimizer, number);
          const int buckets = operations_of_backward(ctx, net, optimizer);
          expect(buckets >= 3, "there are several buckets");
          // None of them ends before all were called.
          expect(operations_of_backward(ctx, net, optimizer, buckets) == buckets, "as many");
          expect(nccl_double::waits() == 0, "the CPU waits in no call of CUDA");
        }) == "");
}

TEST_CASE("over NCCL's calls the CPU waits once for each bucket whose gradients are cut",
          "[train][parallel][zero][nccl][double]") {
  CHECK(run_over_nccl(2, options_with(2), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          for (std::uint64_t number = 0; number < 2; ++number) step(ctx, net, optimizer, number);
          const int buckets = operations_of_backward(ctx, net, optimizer);
          expect(buckets >= 3 && nccl_double::waits() == buckets, [&] {
            return fmt::format("{} buckets, {} waits", buckets, nccl_double::waits());
          });
        }) == "");
}

TEST_CASE("a rank that leaves a training over NCCL by an exception ends the others' step",
          "[train][parallel][nccl][double]") {
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    const Leaving leaving(gang, 1);
    try {
      OverNccl rank(gang, Backend::Nccl, options_with(0));
      auto net = rank.ctx->prepare(Net(kWidths));
      auto optimizer = rank.ctx->prepare(torch::optim::Adam(net->parameters()));
      step(*rank.ctx, net, optimizer, 0);
      if (gang.rank() == 1) throw std::runtime_error("no such row");
      step(*rank.ctx, net, optimizer, 1);
    } catch (const std::runtime_error&) {
      if (gang.rank() != 1) throw;
      await_leaving(gang);
    }
  });
  CHECK(failures({outcomes[1]}) == "");
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains("rank 1"));
}

TEST_CASE("over NCCL's calls gradients are clipped by the norm of all",
          "[train][zero][nccl][double]") {
  const int stage = GENERATE(0, 1, 2, 3), ranks = GENERATE(2, 3);
  CAPTURE(stage, ranks);
  CHECK(run_over_nccl(ranks, options_with(stage), expect_clipped_as_alone) == "");
}

TEST_CASE("over NCCL's calls compressed gradients are the rounded average of rounded gradients",
          "[train][compression][nccl][double]") {
  const auto type = GENERATE(torch::kFloat32, torch::kFloat64);
  CHECK(run_over_nccl(2, compressed(), [&](Context& ctx) { expect_rounded_averages(ctx, type); }) ==
        "");
}

TEST_CASE("over NCCL's calls compression gives the same parameters at all stages of ZeRO",
          "[train][compression][zero][nccl][double]") {
  const KeptValues without;
  CHECK(run_over_nccl(2, compressed(), [&](Context& ctx) {
          without.keep(ctx, trained_compressed(ctx, torch::kFloat32));
        }) == "");
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    CHECK(run_over_nccl(2, compressed(stage), [&](Context& ctx) {
            without.expect_same_as(trained_compressed(ctx, torch::kFloat32), 1e-6, "with ZeRO");
          }) == "");
  }
}

TEST_CASE("over NCCL's calls ranks with SyncBatchNorm train as one process over the joined batch",
          "[train][batch_norm][zero][nccl][double]") {
  const auto [ranks, stage] = GENERATE(table<int, int>({{3, 0}, {2, 1}, {2, 2}, {3, 3}}));
  CAPTURE(ranks, stage);
  CHECK(run_over_nccl(ranks, batch_norm_options(stage),
                      [](Context& ctx) { expect_joined_batch(ctx); }) == "");
}

TEST_CASE("over NCCL's calls ranks with different numbers of batches train as one process",
          "[train][join][nccl][double]") {
  const int stage = GENERATE(0, 1, 2, 3), each = GENERATE(1, 2);
  CAPTURE(stage, each);
  CHECK(run_over_nccl(3, options_with(stage), [&](Context& ctx) {
          expect_joined_as_alone(ctx, {1, 4, 3}, each);
        }) == "");
}

TEST_CASE("over NCCL's calls buckets of parameters that come ahead have the values of all",
          "[train][zero][gathering][nccl][double]") {
  const bool prefetch = GENERATE(true, false);
  const int ranks = GENERATE(2, 3);
  CAPTURE(prefetch, ranks);
  CHECK(run_over_nccl(ranks, prefetch_options(prefetch), expect_deep_net_as_alone) == "");
}

TEST_CASE("over NCCL's calls a bucket of parameters is on its way before an operator needs it",
          "[train][zero][gathering][nccl][double]") {
  const bool prefetch = GENERATE(true, false);
  CAPTURE(prefetch);
  CHECK(run_over_nccl(2, prefetch_options(prefetch), [prefetch](Context& ctx) {
          auto net = ctx.prepare(Net(kDeepWidths, 5));
          auto optimizer = ctx.prepare(sgd(net));
          step(ctx, net, optimizer, 0);                   // from which the order is known
          nccl_double::behave(nccl_double::behaviour());  // which begins to count
          for (int layer = 0; layer < 3; ++layer) {
            net->layers[static_cast<std::size_t>(layer)]->weight.sum();
            // No operator has used the weights behind this one.
            const int gathers = layer + (prefetch ? 2 : 1);
            eventually([&] { return nccl_double::operations() >= gathers; });
            expect(nccl_double::operations() == gathers, [&] {
              return fmt::format("{} gathers at layer {}", nccl_double::operations(), layer);
            });
          }
        }) == "");
}

TEST_CASE("over NCCL's calls a training whose optimizer is in main memory has the same results",
          "[train][zero][placement][nccl][double]") {
  using namespace offload_training;
  constexpr double kTolerance = 1e-6;  // gradients are added in other orders
  const auto type = GENERATE(Type::Float32, Type::BFloat16, Type::Float16);
  const int ranks = GENERATE(2, 3);
  CAPTURE(static_cast<int>(type), ranks);
  const KeptValues without;
  CHECK(run_over_nccl(ranks, options_of({}, type), [&](Context& ctx) {
          without.keep(ctx, offload_training::trained(ctx, prepared_adam));
        }) == "");
  for (const auto& zero : {optimizer_of(1), optimizer_of(2), optimizer_of(3), kParameters}) {
    CAPTURE(zero.stage, zero.offload_parameters);
    CHECK(run_over_nccl(ranks, options_of(zero, type), [&](Context& ctx) {
            without.expect_same_as(offload_training::trained(ctx, prepared_adam), kTolerance,
                                   "in main memory");
          }) == "");
  }
}

TEST_CASE("over NCCL's calls a loss scale that is a power of two changes no bit of a training",
          "[train][precision][zero][nccl][double]") {
  using namespace precision_training;
  const int stage = GENERATE(0, 1, 2, 3), ranks = GENERATE(2, 3);
  CAPTURE(stage, ranks);
  const KeptValues plain;
  CHECK(run_over_nccl(ranks, options_of(Type::Float32, stage),
                      [&](Context& ctx) { plain.keep(ctx, train_scaled(ctx)); }) == "");
  CHECK(run_over_nccl(ranks, options_of(Type::Float16, stage), [&](Context& ctx) {
          plain.expect_same_as(train_scaled(ctx), 0, "scaled");
        }) == "");
}

TEST_CASE("over NCCL's calls all ranks leave a step out whose gradients are not finite on one",
          "[train][precision][zero][nccl][double]") {
  using namespace precision_training;
  const int stage = GENERATE(0, 1, 2, 3);
  const auto wrong = GENERATE(std::numeric_limits<double>::infinity(), std::nan(""));
  CAPTURE(stage, wrong);
  CHECK(run_over_nccl(3, options_of(Type::Float16, stage, {.initial = 1024, .hysteresis = 1}),
                      [&](Context& ctx) { expect_step_left_out(ctx, wrong); }) == "");
}

TEST_CASE("over NCCL's calls operators under autocast compute in the smaller type",
          "[train][precision][nccl][double]") {
  using namespace precision_training;
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 3);
  CAPTURE(static_cast<int>(type), stage);
  CHECK(run_over_nccl(2, options_of(type, stage),
                      [&](Context& ctx) { expect_autocast(ctx, type); }) == "");
}

TEST_CASE("over NCCL's calls a training with master weights is the one written out by hand",
          "[train][precision][zero][nccl][double]") {
  using namespace master_weights_training;
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(static_cast<int>(type), stage);
  const auto check = [&](const Check& each) {
    CHECK(run_with_storage(run_over_nccl, 2, options_with_masters(type, stage), each) == "");
  };
  check([&](Context& ctx, const fs::path& storage) {
    expect_trained_as_by_hand(ctx, type, storage);
  });
  check([&](Context& ctx, const fs::path& storage) { expect_masters_clipped(ctx, type, storage); });
  if (type == Type::BFloat16) {
    if (stage < 2) check([](Context& ctx, const fs::path&) { expect_small_updates_add_up(ctx); });
    return;
  }
  check([](Context& ctx, const fs::path& storage) {
    expect_masters_left_as_they_were(ctx, storage);
  });
  check(expect_small_gradient_kept);
}
