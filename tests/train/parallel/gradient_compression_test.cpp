// Gradients that the ranks send each other in bfloat16.
#include <troupe/train/context.hpp>

#include <vector>

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/zero_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

ContextOptions compressed(int stage = 0, bool find_unused = false) {
  auto options = options_with(stage, find_unused);
  options.data_parallel.compression = GradientCompression::BFloat16;
  return options;
}

/// The loss over a rank's part of the rows, in the net's type.
torch::Tensor loss_in(Net& net, int rank, int ranks, std::uint64_t step = 0) {
  const auto type = net->parameters().front().scalar_type();
  const auto x = part(rows(kRows, kWidths.front(), 10 + step), rank, ranks).to(type);
  const auto y = part(rows(kRows, kWidths.back(), 20 + step), rank, ranks).to(type);
  return torch::nn::functional::mse_loss(net->forward(x), y);
}

torch::Tensor rounded(const torch::Tensor& tensor) { return tensor.to(torch::kBFloat16); }

/// The gradients of each rank's own loss.
std::vector<std::vector<torch::Tensor>> own_gradients(int ranks, torch::ScalarType type) {
  std::vector<std::vector<torch::Tensor>> gradients;
  for (int rank = 0; rank < ranks; ++rank) {
    Net net(kWidths, 5);
    net->to(type);
    loss_in(net, rank, ranks).backward();
    auto& own = gradients.emplace_back();
    for (const auto& parameter : net->parameters()) own.push_back(parameter.grad().clone());
  }
  return gradients;
}

/// Trains for some steps, half of whose gradients accumulate.
std::vector<torch::Tensor> trained(Context& ctx, torch::ScalarType type) {
  Net net(kWidths, 5);
  net->to(type);
  net = ctx.prepare(net);
  auto optimizer = ctx.prepare(
      torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)));
  for (std::uint64_t i = 0; i < 6; ++i) {
    if (i % 2 == 0) {
      optimizer.zero_grad();
      const auto guard = ctx.no_sync();
      loss_in(net, ctx.rank(), ctx.world_size(), i).backward();
    } else {
      loss_in(net, ctx.rank(), ctx.world_size(), i).backward();
      optimizer.step();
    }
  }
  return whole_values(ctx, net);
}

}  // namespace

TEST_CASE("compressed gradients are the rounded average of rounded gradients",
          "[train][compression]") {
  const bool is_double = GENERATE(false, true);
  CHECK(run(2, compressed(), [=](Context& ctx) {
          const auto type = is_double ? torch::kFloat64 : torch::kFloat32;
          Net net(kWidths, 5);
          net->to(type);
          net = ctx.prepare(net);
          for (int round = 0; round < 2; ++round) {
            net->zero_grad(round == 0);
            loss_in(net, ctx.rank(), 2).backward();
            const auto own = own_gradients(2, type);
            for (std::size_t i = 0; i < own[0].size(); ++i) {
              const auto sum =
                  rounded(own[0][i]).to(torch::kFloat32) + rounded(own[1][i]).to(torch::kFloat32);
              const auto& gradient = net->parameters()[i].grad();
              expect(gradient.scalar_type() == type, "a gradient of the parameter's type");
              expect(torch::equal(gradient, rounded(sum / 2).to(type)),
                     fmt::format("gradient {} in round {}", i, round));
            }
          }
        }) == "");
}

TEST_CASE("compressed gradients of ranks on two nodes are near the average",
          "[train][compression]") {
  CHECK(run_in(ForkedGang::on_nodes(4, 2), compressed(), [](Context& ctx) {
          auto net = ctx.prepare(float_net());
          loss_in(net, ctx.rank(), 4).backward();
          const auto own = own_gradients(4, torch::kFloat32);
          for (std::size_t i = 0; i < own[0].size(); ++i) {
            const auto average = (own[0][i] + own[1][i] + own[2][i] + own[3][i]) / 4;
            const auto largest = average.abs().max().item<double>();
            expect(torch::allclose(net->parameters()[i].grad(), average, 0, 0.03 * largest),
                   fmt::format("gradient {} to the precision of bfloat16", i));
          }
        }) == "");
}

TEST_CASE("compression gives the same parameters at all stages of ZeRO", "[train][compression]") {
  const bool find_unused = GENERATE(false, true);
  const KeptValues without;
  CHECK(run(2, compressed(0, find_unused),
            [&](Context& ctx) { without.keep(ctx, trained(ctx, torch::kFloat32)); }) == "");
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    CHECK(run(2, compressed(stage, find_unused), [&](Context& ctx) {
            without.expect_same_as(trained(ctx, torch::kFloat32), 1e-6, "with ZeRO");
          }) == "");
  }
}

TEST_CASE("gradients of bfloat16 are averaged as without compression", "[train][compression]") {
  const KeptValues without;
  CHECK(run(2, options_with(0),
            [&](Context& ctx) { without.keep(ctx, trained(ctx, torch::kBFloat16)); }) == "");
  CHECK(run(2, compressed(), [&](Context& ctx) {
          without.expect_same_as(trained(ctx, torch::kBFloat16), 0, "compressed");
        }) == "");
}

TEST_CASE("after a backward that an exception has left, compressed gradients are averages again",
          "[train][compression][failure]") {
  CHECK(run(2, compressed(), [](Context& ctx) {
          auto net = ctx.prepare(float_net());
          bool fails = ctx.rank() == 1;
          net->layers[1]->weight.register_hook([&](const at::Tensor&) {
            if (fails) throw std::runtime_error("no more memory");
          });
          bool has_failed = false;
          try {
            loss_in(net, ctx.rank(), 2).backward();
          } catch (const std::exception&) {
            has_failed = true;
          }
          expect(has_failed, "the backward fails on all ranks");
          fails = false;
          net->zero_grad();
          loss_in(net, ctx.rank(), 2).backward();
          const auto own = own_gradients(2, torch::kFloat32);
          for (std::size_t i = 0; i < own[0].size(); ++i) {
            const auto sum =
                rounded(own[0][i]).to(torch::kFloat32) + rounded(own[1][i]).to(torch::kFloat32);
            expect(torch::equal(net->parameters()[i].grad(), rounded(sum / 2).to(torch::kFloat32)),
                   fmt::format("gradient {} of the next backward", i));
          }
        }) == "");
}
