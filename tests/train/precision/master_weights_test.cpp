// Trainings with master weights: the optimizers keep the values in float32 of parameters of
// bfloat16 and float16. The tests compare them with a training that is written out by hand.
#include <troupe/train/context.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include "checkpoint/directory.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/master_weights_training.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"

#include "master_weights_checks.hpp"

using namespace master_weights_training;

TEST_CASE("a training with master weights is the one written out by hand, bit for bit",
          "[train][precision][zero]") {
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 1, 2, 3), ranks = GENERATE(1, 2);
  CAPTURE(static_cast<int>(type), stage, ranks);
  const Scratch scratch;
  CHECK(run(ranks, options_with_masters(type, stage),
            [&](Context& ctx) { expect_trained_as_by_hand(ctx, type, scratch.path()); },
            {.storage = scratch.path()}) == "");
}

TEST_CASE("gradients of parameters with master weights are clipped by their norm",
          "[train][precision][zero]") {
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(static_cast<int>(type), stage);
  const Scratch scratch;
  CHECK(run(2, options_with_masters(type, stage),
            [&](Context& ctx) { expect_masters_clipped(ctx, type, scratch.path()); },
            {.storage = scratch.path()}) == "");
}

TEST_CASE("a step of float16 that is left out leaves the master weights as they were",
          "[train][precision][zero]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const Scratch scratch;
  CHECK(run(2, options_with_masters(Type::Float16, stage),
            [&](Context& ctx) { expect_masters_left_as_they_were(ctx, scratch.path()); },
            {.storage = scratch.path()}) == "");
}

TEST_CASE("updates that the smaller type would lose add up", "[train][precision]") {
  const int stage = GENERATE(0, 1);
  CHECK(run(2, options_with_masters(Type::BFloat16, stage),
            [&](Context& ctx) { expect_small_updates_add_up(ctx); }) == "");
}

TEST_CASE("a gradient that float16 cannot hold once it is divided is not lost",
          "[train][precision][zero]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const Scratch scratch;
  CHECK(run(2, options_with_masters(Type::Float16, stage),
            [&](Context& ctx) { expect_small_gradient_kept(ctx, scratch.path()); },
            {.storage = scratch.path()}) == "");
}

TEST_CASE("what is written to a parameter becomes its master weight", "[train][precision][zero]") {
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 1, 2, 3);
  CHECK(run(2, options_with_masters(type, stage), [&](Context& ctx) {
          ByHand by_hand(ctx, type);
          auto net = ctx.prepare(float_net());
          auto optimizer = ctx.prepare(adam(net));
          same_step(ctx, net, optimizer, 0);
          by_hand.step(ctx, {0}, 1);
          {
            const torch::NoGradGuard no_grad;
            const auto whole = ctx.gathered(net);
            net->layers[1]->weight.mul_(0.5);
            by_hand.net->layers[1]->weight.mul_(0.5);
            by_hand.masters[2].copy_(by_hand.net->layers[1]->weight);
          }
          same_step(ctx, net, optimizer, 1);
          by_hand.step(ctx, {1}, 1);
          expect_same(whole_values(ctx, net), values_of(by_hand.net), 0, "the parameters");
        }) == "");
}

TEST_CASE("master weights leave frozen parameters, batch normalization and buffers in float32",
          "[train][precision]") {
  using namespace torch::nn;
  const int stage = GENERATE(0, 1, 2, 3);
  CHECK(run(2, options_with_masters(Type::BFloat16, stage), [](Context& ctx) {
          Sequential made(Linear(6, 8), BatchNorm1d(8), Linear(8, 8), Linear(8, 4));
          for (auto& parameter : made[2]->parameters()) parameter.set_requires_grad(false);
          auto net = ctx.prepare(made);
          auto optimizer = ctx.prepare(optim::SGD(
              {net[0]->parameters()[0], net[0]->parameters()[1], net[1]->parameters()[0],
               net[1]->parameters()[1], net[3]->parameters()[0], net[3]->parameters()[1]},
              0.1));
          const auto type_of = [&](std::size_t layer) {
            return net[layer]->parameters().front().scalar_type();
          };
          expect(type_of(0) == torch::kBFloat16 && type_of(3) == torch::kBFloat16, "trained ones");
          expect(type_of(2) == torch::kFloat32, "frozen ones");
          expect(type_of(1) == torch::kFloat32, "batch normalization");
          expect(net[1]->buffers().front().scalar_type() == torch::kFloat32, "buffers");
          const auto values = [&] {
            const auto whole = ctx.gathered(net);
            std::vector<torch::Tensor> found;
            for (const auto& parameter : net->parameters()) found.push_back(parameter.clone());
            return found;
          };
          const auto before = values();
          at::Tensor loss;
          {
            const auto autocast = ctx.autocast();
            loss = net->forward(torch::randn({16, 6})).to(torch::kFloat32).square().mean();
          }
          loss.backward();
          ctx.clip_grad_norm(optimizer, 0.5);
          optimizer.step();
          const auto after = values();
          for (std::size_t i = 0; i < before.size(); ++i) {
            const bool is_frozen = i == 4 || i == 5;
            // The bias before a normalization has no gradient but rounding.
            if (i != 1) expect(torch::equal(before[i], after[i]) == is_frozen, fmt::to_string(i));
          }
        }) == "");
}

TEST_CASE("what cannot have master weights is refused", "[train][precision]") {
  const auto error = [](const ContextOptions& options, const std::function<void(Context&)>& rank) {
    return ForkedGang::on_one_node(1)
        .run([&](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options);
          rank(ctx);
        })
        .front()
        .message;
  };
  CHECK_THAT(error(options_with_masters(Type::Float32), [](Context&) {}),
             Contains("master_weights is set, and its type is Float32"));
  CHECK_THAT(error(options_with_masters(Type::BFloat16),
                   [](Context& ctx) {
                     auto net = ctx.prepare(float_net());
                     ctx.prepare(optim::RMSprop(net->parameters()));
                   }),
             Contains("RMSprop") && Contains("mixed_precision.master_weights is for Adam"));
  CHECK_THAT(error(options_with_masters(Type::Float16),
                   [](Context& ctx) {
                     auto net = float_net();
                     net->layers[1]->bias.data()[3] = 1e6;
                     ctx.prepare(net);
                   }),
             Contains("parameter layer1.bias has a number that float16 cannot hold"));
  CHECK_THAT(error(options_with_masters(Type::BFloat16),
                   [](Context& ctx) {
                     auto net = float_net();
                     ctx.prepare(adam(net));
                   }),
             Contains("mixed_precision.master_weights prepare the model first"));
  CHECK_THAT(error(options_with_masters(Type::BFloat16),
                   [](Context& ctx) {
                     auto net = ctx.prepare(float_net());
                     auto optimizer = ctx.prepare(adam(net));
                     std::stringstream stream;
                     torch::save(optimizer, stream);
                   }),
             Contains("use ctx.checkpoint(model, optimizer)"));
}

TEST_CASE("a model that shares a layer with a prepared one leaves it as it is",
          "[train][precision]") {
  const int stage = GENERATE(0, 1);
  CHECK(run(2, options_with_masters(Type::BFloat16, stage), [](Context& ctx) {
          auto net = ctx.prepare(float_net());
          torch::nn::Sequential other(net->layers[0], torch::nn::Linear(40, 3));
          ctx.prepare(other);
          auto optimizer = ctx.prepare(adam(net));
          auto of_other = other->forward(torch::ones({2, 6}, torch::kBFloat16)).sum();
          (loss_on(ctx, net, 0, ctx.rank(), 2) + of_other.to(torch::kFloat32)).backward();
          optimizer.step();
          const auto mine = values_of(net)[0];
          auto first = mine.clone();
          ctx.communicator().broadcast(first.data_ptr(), static_cast<std::size_t>(first.numel()),
                                       DataType::BFloat16, 0);
          expect(torch::equal(mine, first), "the ranks have the same values");
        }) == "");
}

TEST_CASE("parameters of float64 have no master weights", "[train][precision]") {
  const int stage = GENERATE(0, 2);
  CHECK(run(2, options_with_masters(Type::BFloat16, stage), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          Net plain(kWidths, 5);
          auto plain_optimizer = adam(plain);
          for (std::uint64_t number = 0; number < 3; ++number) {
            optimizer.zero_grad();
            loss_of(net, 0, 1, number).backward();
            optimizer.step();
            plain_optimizer.zero_grad();
            loss_of(plain, 0, 1, number).backward();
            plain_optimizer.step();
          }
          expect_same(values_of(net), values_of(plain), 0, "the parameters");
        }) == "");
}
