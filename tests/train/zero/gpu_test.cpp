// ZeRO on a GPU that the ranks share: they train as they do without, keep a part of the
// state each, and what they write goes on without ZeRO.
#include <troupe/train/context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "checkpoint/directory.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/gpu_rank.hpp"
#include "support/net.hpp"
#include "support/one_gpu.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/zero_training.hpp"

#include "clipping_training.hpp"
#include "prefetch_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
namespace optim = torch::optim;

namespace {

/// A tensor for each element of the parameter, of the kinds that are tried here.
std::vector<torch::Tensor> tensors_of(const optim::SGDParamState& state) {
  return {state.momentum_buffer()};
}
template <class State>
std::vector<torch::Tensor> tensors_of(const State& state) {
  return {state.exp_avg(), state.exp_avg_sq()};
}

/// Of an optimizer whose state has that type, on this rank.
template <class State>
std::int64_t bytes_of_state(const optim::Optimizer& optimizer, c10::Device device) {
  std::size_t bytes = 0;
  for (const auto& [parameter, state] : optimizer.state()) {
    for (const auto& tensor : tensors_of(static_cast<const State&>(*state))) {
      expect(tensor.device() == device, "the state is on the GPU");
      bytes += tensor.nbytes();
    }
  }
  return static_cast<std::int64_t>(bytes);
}

/// Trains a net of its own for six steps.
template <class MakeOptimizer>
std::vector<torch::Tensor> values_trained_with(Context& ctx, const MakeOptimizer& make) {
  auto net = ctx.prepare(Net(kWidths, 5));
  auto optimizer = ctx.prepare(make(net));
  for (std::uint64_t i = 0; i < 6; ++i) step(ctx, net, optimizer, i);
  expect_same_everywhere(ctx, net);
  return values_of(net);
}

/// What each of three optimizers makes of the same net.
std::vector<torch::Tensor> values_trained_with_each(Context& ctx) {
  std::vector<torch::Tensor> all;
  const auto add = [&](const std::vector<torch::Tensor>& values) {
    for (const auto& tensor : values) all.push_back(tensor);
  };
  add(values_trained_with(ctx, [](Net& net) { return adam(net); }));
  add(values_trained_with(ctx, adamw));
  add(values_trained_with(ctx, [](Net& net) { return sgd(net); }));
  return all;
}

/// After one step every rank has its part of the state, `of_parameter` bytes for each of a
/// parameter's, and the parts together are the whole.
template <class State, class MakeOptimizer>
void expect_own_part_alone(Context& ctx, std::int64_t of_parameter, const MakeOptimizer& make) {
  auto net = ctx.prepare(Net(kWidths, 5));
  auto optimizer = ctx.prepare(make(net));
  step(ctx, net, optimizer, 0);
  std::int64_t whole = 0, largest_gaps = 0;
  for (const auto& parameter : net->parameters()) {
    const auto element = of_parameter * static_cast<std::int64_t>(parameter.element_size());
    whole += element * parameter.numel();
    largest_gaps += element * 64;  // the parts are equal but for the gaps between parameters
  }
  const auto kept = bytes_of_state<State>(optimizer, ctx.device());
  expect(kept > 0 && kept <= whole / ctx.world_size() + largest_gaps,
         [&] { return fmt::format("{} of {} bytes", kept, whole); });
  const auto sum = torch::full({1}, kept, torch::dtype(torch::kInt64).device(ctx.device()));
  ctx.communicator().all_reduce(sum.data_ptr(), 1, DataType::Int64, ReduceOp::Sum);
  expect(sum.item().toLong() == whole, "all parts together are the whole state");
}

/// Trains up to an epoch, and writes a checkpoint after it if there is a place for it.
Net trained_until(Context& ctx, int epochs) {
  auto net = ctx.prepare(Net(kWidths, 5));
  auto optimizer = ctx.prepare(adam(net));
  for (int epoch : ctx.epochs(epochs)) {
    step(ctx, net, optimizer, static_cast<std::uint64_t>(epoch));
    if (epoch + 1 == epochs) ctx.checkpoint(net, optimizer);
  }
  return net;
}

}  // namespace

TEST_CASE("on a GPU ranks train with ZeRO as they do without, the same on all ranks",
          "[train][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const auto ranks = GENERATE(2, 3);
  // Either stage reduces the same buckets, and a sum of two numbers does not depend on their order.
  // NCCL does not promise that two gangs add three in the same order.
  const double tolerance = ranks == 2 ? 0 : 1e-12;
  const KeptValues without;
  CHECK(failures(ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
          GpuRank rank(gang, options_with(0));
          without.keep(rank.ctx, values_trained_with_each(rank.ctx));
        })) == "");
  for (const int stage : {1, 2, 3}) {
    CHECK(failures(ForkedGang::on_one_node(ranks).run([&](GangContext& gang) {
            GpuRank rank(gang, options_with(stage));
            without.expect_same_as(values_trained_with_each(rank.ctx), tolerance, "with ZeRO");
          })) == "");
  }
}

TEST_CASE("on a GPU a rank keeps its part of an optimizer's state alone", "[train][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const auto ranks = GENERATE(2, 3);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          GpuRank rank(gang, options_with(1));
          auto& ctx = rank.ctx;
          expect_own_part_alone<optim::AdamParamState>(ctx, 2, [](Net& net) { return adam(net); });
          expect_own_part_alone<optim::AdamWParamState>(ctx, 2, adamw);
          expect_own_part_alone<optim::SGDParamState>(ctx, 1, [](Net& net) { return sgd(net); });
        })) == "");
}

TEST_CASE("on a GPU whole gradients and gradients of a part are clipped by the norm of all",
          "[train][zero][gradients][gpu]") {
  if (skipped_without_gpu()) return;
  const int stage = GENERATE(0, 1, 2, 3);
  const auto ranks = GENERATE(2, 3);
  CAPTURE(stage, ranks);
  CHECK(run_on_gpu(ranks, options_with(stage), expect_clipped_as_alone) == "");
}

TEST_CASE("on a GPU buckets of parameters that come ahead have the values of all",
          "[train][zero][gathering][gpu]") {
  if (skipped_without_gpu()) return;
  const bool prefetch = GENERATE(true, false);
  const int ranks = GENERATE(2, 3);
  CAPTURE(prefetch, ranks);
  CHECK(run_on_gpu(ranks, prefetch_options(prefetch), expect_deep_net_as_alone) == "");
}

TEST_CASE("a checkpoint that two ranks wrote with ZeRO on a GPU goes on in one without ZeRO",
          "[train][zero][checkpoint][gpu]") {
  if (skipped_without_gpu()) return;
  const Scratch scratch;
  const auto storage = scratch.path().string();
  CHECK(failures(ForkedGang::on_one_node(2).run([&](GangContext& gang) {
          GpuRank rank(gang, options_with(1), storage);
          trained_until(rank.ctx, 3);
        })) == "");
  CHECK(failures(ForkedGang::on_one_node(1).run([&](GangContext& gang) {
          GpuRank rank(gang, options_with(0), "", latest_checkpoint(storage).string());
          auto net = trained_until(rank.ctx, 6);
          Net reference(kWidths, 5);
          reference->to(rank.ctx.device());
          auto plain = adam(reference);
          for (std::uint64_t i = 0; i < 6; ++i) step(rank.ctx, reference, plain, i);
          for (const auto& item : reference->named_parameters())
            expect_close(net->named_parameters()[item.key()], item.value(), kInOtherOrder,
                         item.key());
        })) == "");
}
