// Data-parallel training on a GPU, whose gradients NCCL averages: against one process, on the GPU
// too. The ranks share one GPU.
#include <troupe/train/context.hpp>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include "guard.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/one_gpu.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

ForkedGang gang_of(int ranks) {
  auto gang = ForkedGang::on_one_node(ranks);
  gang.limit = std::chrono::seconds(200);
  return gang;
}

/// A rank's context on the one GPU.
struct Rank {
  explicit Rank(GangContext& gang, bool find_unused = false, std::string storage = {},
                std::string restore_from = {})
      : member((share_one_gpu(gang.rank()), gang), std::move(storage), std::move(restore_from)),
        ctx(member, small_buckets(find_unused)) {
    expect(ctx.device().is_cuda(), "the rank is on a GPU");
  }
  TestMember member;
  Context ctx;
};

/// One process's net on the GPU.
Net reference_on(c10::Device device) {
  Net net(kWidths);
  net->to(device);
  return net;
}

void expect_near(const torch::Tensor& a, const torch::Tensor& b, const std::string& what) {
  const auto error =
      (a - b).abs().max().item<double>() / std::max(1e-30, b.abs().max().item<double>());
  expect(error <= 1e-9, fmt::format("{} to 1e-9, it is off by {}", what, error));
}

/// Bit for bit, on all ranks.
void expect_same_everywhere(Context& ctx, Net& net) {
  for (const auto& item : net->named_parameters()) {
    auto of_root = item.value().detach().clone();
    ctx.communicator().broadcast(of_root.data_ptr(), static_cast<std::size_t>(of_root.numel()),
                                 DataType::Float64, 0);
    expect(torch::equal(of_root, item.value()), item.key() + " is the same on all ranks");
  }
}

}  // namespace

TEST_CASE("on a GPU twenty steps give the weights of one process, the same on all ranks",
          "[train][data_parallel][gpu]") {
  if (skipped_without_gpu()) return;
  const int ranks = GENERATE(1, 2, 3);
  CHECK(failures(gang_of(ranks).run([](GangContext& gang) {
          Rank rank(gang);
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
            expect_near(net->named_parameters()[item.key()], item.value(), item.key());
          expect_same_everywhere(ctx, net);
        })) == "");
}

TEST_CASE("on a GPU gradients accumulated under no_sync are averaged by the backward after it",
          "[train][data_parallel][gpu]") {
  if (skipped_without_gpu()) return;
  CHECK(failures(gang_of(2).run([](GangContext& gang) {
          Rank rank(gang);
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
            expect_near(net->named_parameters()[item.key()].grad(), item.value().grad(),
                        item.key());
          }
        })) == "");
}

TEST_CASE("on a GPU gradients that come late, on a stream of the program's own, are averaged",
          "[train][data_parallel][gpu]") {
  if (skipped_without_gpu()) return;
  CHECK(failures(gang_of(2).run([](GangContext& gang) {
          Rank rank(gang);
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
              expect_near(net->named_parameters()[item.key()].grad(), item.value().grad(),
                          item.key());
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
  const auto outcomes = gang_of(2).run([find_unused](GangContext& gang) {
    Rank rank(gang, find_unused);
    auto net = rank.ctx.prepare(Net(kWidths));
    const auto x = rows(3, kWidths.front(), 1).to(rank.ctx.device());
    auto out = net->layers[0]->forward(x);
    if (gang.rank() == 0) out = net->layers[1]->forward(out);
    out.sum().backward();
    auto reference = reference_on(rank.ctx.device());
    reference->layers[1]->forward(reference->layers[0]->forward(x)).sum().backward();
    expect_near(net->layers[1]->weight.grad(), reference->layers[1]->weight.grad() / 2,
                "half of what one of two ranks has");
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
  CHECK(failures(gang_of(2).run([](GangContext& gang) {
          Rank rank(gang);
          auto net = rank.ctx.prepare(Net(kWidths));
          bool throws = gang.rank() == 1;
          net->layers[1]->weight.register_hook([&throws](const at::Tensor&) {
            if (throws) throw std::runtime_error("a hook of the user's");
          });
          std::string error;
          try {
            loss_of(net, gang.rank(), gang.size()).backward();
          } catch (const std::exception& e) {
            error = e.what();
          }
          expect(error.find(throws ? "a hook of the user's" : "rank 1 left this backward") !=
                     std::string::npos,
                 "what the step says: " + error);
          throws = false;
          net->zero_grad();
          auto reference = reference_on(rank.ctx.device());
          loss_of(reference, 0, 1, 1).backward();
          loss_of(net, gang.rank(), gang.size(), 1).backward();
          expect_near(net->layers[0]->weight.grad(), reference->layers[0]->weight.grad(),
                      "the gradients of the next step");
        })) == "");
}

TEST_CASE("a rank killed in its step on a GPU ends the others' backward",
          "[train][data_parallel][failure][gpu]") {
  if (skipped_without_gpu()) return;
  const auto outcomes = gang_of(2).run([](GangContext& gang) {
    Rank rank(gang);
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
    Rank rank(gang, false, storage, from);
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
      expect_near(net->named_parameters()[item.key()], item.value(), item.key());
  };
  CHECK(failures(gang_of(1).run(
            [&](GangContext& gang) { steps(gang, folder.path().string(), "", 0, 5); })) == "");
  std::string written;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    written = entry.path().string();
  INFO(written);
  CHECK(failures(gang_of(2).run([&](GangContext& gang) { steps(gang, "", written, 5, 10); })) ==
        "");
}
