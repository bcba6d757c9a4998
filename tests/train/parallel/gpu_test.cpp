// Data-parallel training on a GPU, whose gradients NCCL averages: against one process, on the GPU
// too. The ranks share one GPU.
#include <troupe/train/context.hpp>

#include <csignal>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/gpu_rank.hpp"
#include "support/net.hpp"
#include "support/one_gpu.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/zero_training.hpp"

#include "batch_norm_training.hpp"
#include "compressed_training.hpp"
#include "join_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

TEST_CASE("on a GPU twenty steps give the weights of one process, the same on all ranks",
          "[train][data_parallel][gpu]") {
  if (skipped_without_gpu()) return;
  const int ranks = GENERATE(1, 2, 3);
  CHECK(failures(ForkedGang::on_one_node(ranks).run([](GangContext& gang) {
          GpuRank rank(gang);
          auto& ctx = rank.ctx;
          auto net = ctx.prepare(Net(kWidths, 1 + static_cast<std::uint64_t>(gang.rank())));
          auto reference = reference_on(ctx.device());
          auto make = [](Net& of) {
            return torch::optim::SGD(of->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
          };
          auto optim = ctx.prepare(make(net));
          auto plain = make(reference);
          for (std::uint64_t step = 0; step < 20; ++step) {
            optim.zero_grad();
            plain.zero_grad();
            loss_of(net, gang.rank(), gang.size(), step).backward();
            loss_of(reference, 0, 1, step).backward();
            optim.step();
            plain.step();
          }
          for (const auto& item : reference->named_parameters())
            expect_close(net->named_parameters()[item.key()], item.value(), kInOtherOrder,
                         item.key());
          expect_same_everywhere(ctx, net);
        })) == "");
}

TEST_CASE("on a GPU gradients accumulated under no_sync are averaged by the backward after it",
          "[train][data_parallel][gpu]") {
  if (skipped_without_gpu()) return;
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          GpuRank rank(gang);
          auto net = rank.ctx.prepare(Net(kWidths));
          auto reference = reference_on(rank.ctx.device());
          for (std::uint64_t step = 0; step < 3; ++step) loss_of(reference, 0, 1, step).backward();
          {
            const auto guard = rank.ctx.no_sync();
            for (std::uint64_t step = 0; step < 2; ++step)
              loss_of(net, gang.rank(), gang.size(), step).backward();
          }
          loss_of(net, gang.rank(), gang.size(), 2).backward();
          for (const auto& item : reference->named_parameters()) {
            expect_close(net->named_parameters()[item.key()].grad(), item.value().grad(),
                         kInOtherOrder, item.key());
          }
        })) == "");
}

TEST_CASE("on a GPU gradients that come late, on a stream of the program's own, are averaged",
          "[train][data_parallel][gpu]") {
  if (skipped_without_gpu()) return;
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          GpuRank rank(gang);
          const auto device = rank.ctx.device();
          auto net = rank.ctx.prepare(Net(kWidths));
          auto reference = reference_on(device);
          const auto one = torch::eye(2048, torch::dtype(torch::kFloat64).device(device));
          // Runs beside the default stream.
          const c10::impl::VirtualGuardImpl gpu(device.type());
          gpu.synchronizeStream(gpu.getStream(device));
          const auto before = gpu.exchangeStream(gpu.getStreamFromGlobalPool(device));
          for (std::uint64_t step = 0; step < 3; ++step) {
            auto late = one;
            for (int i = 0; i < 40; ++i) late = late.matmul(one);
            net->zero_grad();
            reference->zero_grad();
            (loss_of(net, gang.rank(), gang.size(), step) * late[0][0]).backward();
            loss_of(reference, 0, 1, step).backward();
            for (const auto& item : reference->named_parameters()) {
              expect_close(net->named_parameters()[item.key()].grad(), item.value().grad(),
                           kInOtherOrder, item.key());
            }
          }
          gpu.exchangeStream(before);
        })) == "");
}

TEST_CASE(
    "on a GPU a rank's unused parameters count as zero where that is asked for, else are named",
    "[train][data_parallel][gpu]") {
  if (skipped_without_gpu()) return;
  const bool find_unused = GENERATE(true, false);
  const auto outcomes = ForkedGang::on_one_node(2).run([find_unused](GangContext& gang) {
    GpuRank rank(gang, small_buckets(find_unused));
    auto net = rank.ctx.prepare(Net(kWidths));
    const auto x = rows(3, kWidths.front(), 1).to(rank.ctx.device());
    auto out = net->layers[0]->forward(x);
    if (gang.rank() == 0) out = net->layers[1]->forward(out);
    out.sum().backward();
    auto reference = reference_on(rank.ctx.device());
    reference->layers[1]->forward(reference->layers[0]->forward(x)).sum().backward();
    expect_close(net->layers[1]->weight.grad(), reference->layers[1]->weight.grad() / 2,
                 kInOtherOrder, "half of what one of two ranks has");
    expect(!net->layers[2]->weight.grad().defined(), "no gradient for what no rank used");
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.type << ": " << outcome.message);
    CHECK(outcome.threw != find_unused);
    if (!find_unused) CHECK_THAT(outcome.message, Contains("of 6 parameters got no gradient"));
  }
}

TEST_CASE(
    "on a GPU a step that an exception leaves on one rank fails on all, and the next one works",
    "[train][data_parallel][failure][gpu]") {
  if (skipped_without_gpu()) return;
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          GpuRank rank(gang);
          auto net = rank.ctx.prepare(Net(kWidths));
          bool throws = gang.rank() == 1;
          net->layers[1]->weight.register_hook([&throws](const at::Tensor&) {
            if (throws) throw std::runtime_error("a hook of the user's");
          });
          const auto error =
              thrown_by<std::exception>([&] { loss_of(net, gang.rank(), gang.size()).backward(); });
          expect_in(error, throws ? "a hook of the user's" : "rank 1 left this backward");
          throws = false;
          net->zero_grad();
          auto reference = reference_on(rank.ctx.device());
          loss_of(reference, 0, 1, 1).backward();
          loss_of(net, gang.rank(), gang.size(), 1).backward();
          expect_close(net->layers[0]->weight.grad(), reference->layers[0]->weight.grad(),
                       kInOtherOrder, "the gradients of the next step");
        })) == "");
}

TEST_CASE("a rank killed in its step on a GPU ends the others' backward",
          "[train][data_parallel][failure][gpu]") {
  if (skipped_without_gpu()) return;
  const auto outcomes = ForkedGang::on_one_node(2).run([](GangContext& gang) {
    GpuRank rank(gang);
    auto net = rank.ctx.prepare(Net(kWidths));
    for (std::uint64_t step = 0;; ++step) {
      if (step == 5 && gang.rank() == 1) ::kill(::getpid(), SIGKILL);
      loss_of(net, gang.rank(), gang.size(), step).backward();
    }
  });
  INFO(outcomes[0].type << ": " << outcomes[0].message);
  CHECK(outcomes[0].type == "GangBroken");
  CHECK_THAT(outcomes[0].message, Contains("rank 1"));
}

TEST_CASE("a checkpoint written from a GPU continues with another number of ranks",
          "[train][checkpoint][gpu]") {
  if (skipped_without_gpu()) return;
  const Scratch folder;
  auto steps = [](GangContext& gang, const std::string& storage, const std::string& from,
                  std::uint64_t first, std::uint64_t last) {
    GpuRank rank(gang, small_buckets(), storage, from);
    auto& ctx = rank.ctx;
    auto net = ctx.prepare(Net(kWidths));
    auto optim = ctx.prepare(
        torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)));
    for (std::uint64_t step = first; step < last; ++step) {
      optim.zero_grad();
      loss_of(net, gang.rank(), gang.size(), step).backward();
      optim.step();
    }
    if (from.empty()) {
      ctx.checkpoint(net, optim);
      return;
    }
    auto reference = reference_on(ctx.device());
    auto plain =
        torch::optim::SGD(reference->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (std::uint64_t step = 0; step < last; ++step) {
      plain.zero_grad();
      loss_of(reference, 0, 1, step).backward();
      plain.step();
    }
    for (const auto& item : reference->named_parameters())
      expect_close(net->named_parameters()[item.key()], item.value(), kInOtherOrder, item.key());
  };
  CHECK(failures(ForkedGang::on_one_node(1).run(
            [&](GangContext& gang) { steps(gang, folder.path().string(), "", 0, 5); })) == "");
  const auto written = latest_checkpoint(folder.path()).string();
  INFO(written);
  CHECK(failures(ForkedGang::on_one_node(2).run(
            [&](GangContext& gang) { steps(gang, "", written, 5, 10); })) == "");
}

TEST_CASE("on a GPU compressed gradients are the rounded average of rounded gradients",
          "[train][compression][gpu]") {
  if (skipped_without_gpu()) return;
  const auto type = GENERATE(torch::kFloat32, torch::kFloat64);
  // One process may round a gradient that is nearly between two of bfloat16 to the other one.
  constexpr double kOneBit = 1. / 128;
  CHECK(run_on_gpu(2, compressed(),
                   [&](Context& ctx) { expect_rounded_averages(ctx, type, kOneBit); }) == "");
}

TEST_CASE("on a GPU compression gives about the same parameters at all stages of ZeRO",
          "[train][compression][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const KeptValues without;
  CHECK(run_on_gpu(2, compressed(), [&](Context& ctx) {
          without.keep(ctx, trained_compressed(ctx, torch::kFloat32));
        }) == "");
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    CHECK(run_on_gpu(2, compressed(stage), [&](Context& ctx) {
            without.expect_same_as(trained_compressed(ctx, torch::kFloat32), 1e-3, "with ZeRO");
          }) == "");
  }
}

TEST_CASE("on a GPU ranks with SyncBatchNorm train as one process over the joined batch",
          "[train][batch_norm][zero][gpu]") {
  if (skipped_without_gpu()) return;
  const auto [ranks, stage] = GENERATE(table<int, int>({{3, 0}, {2, 1}, {2, 2}, {3, 3}}));
  CAPTURE(ranks, stage);
  CHECK(run_on_gpu(ranks, batch_norm_options(stage), [](Context& ctx) {
          expect_joined_batch(ctx, 1e-9);  // other kernels than those of LibTorch's layers
        }) == "");
}

TEST_CASE("on a GPU ranks with different numbers of batches train as one process",
          "[train][join][gpu]") {
  if (skipped_without_gpu()) return;
  const int stage = GENERATE(0, 1, 2, 3), each = GENERATE(1, 2);
  CAPTURE(stage, each);
  CHECK(run_on_gpu(3, options_with(stage), [&](Context& ctx) {
          expect_joined_as_alone(ctx, {1, 4, 3}, each);
        }) == "");
}
