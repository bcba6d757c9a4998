// ZeRO, stages 2 and 3: a rank has the averages of one part of the gradients.
#include <troupe/train/context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"
#include "zero/gradient_shard.hpp"

#include "clipping_training.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;
using Catch::Contains;

namespace {

// Of float64, where sums are in another order than without ZeRO: a later average is added to the
// one before, and not to a rank's gradients.
constexpr double kTolerance = 1e-12;

/// The loss of the first layers alone.
torch::Tensor partial_loss(Context& ctx, Net& net, std::size_t layers, std::uint64_t step) {
  auto x = rows(4, kWidths.front(), 10 * step + static_cast<std::uint64_t>(ctx.rank()));
  for (std::size_t i = 0; i < layers; ++i) x = net->layers[i]->forward(x);
  return x.square().mean();
}

/// Trains a step, has `fail` fail on each rank, but without ZeRO only where `fails_without` says
/// so, and trains another step.
Training failing_in_between(const std::function<void(Context&, Net&)>& fail, bool fails_without) {
  return [=](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    step(ctx, net, optimizer, 0);
    bool has_failed = false;
    try {
      fail(ctx, net);
    } catch (const std::exception&) {
      has_failed = true;
    }
    const bool is_to_fail = fails_without || ctx.options().zero.stage >= 2;
    expect(has_failed == is_to_fail, is_to_fail ? "it fails on every rank" : "it fails on no rank");
    net->zero_grad();
    step(ctx, net, optimizer, 2);
    return values_of(net);
  };
}

}  // namespace

TEST_CASE("a rank keeps the averages of its part of the gradients alone (1)",
          "[train][zero][gradients]") {
  CHECK(failures(ForkedGang::on_one_node(2).run([](GangContext& gang) {
          TestMember member(gang);
          Context ctx(member, options_with(2));
          auto net = ctx.prepare(Net(kWidths, 5));
          rank_loss(ctx, net, 0).backward();
          for (const auto& item : net->named_parameters()) {
            const auto& gradient = item.value().grad();
            expect(gradient.defined() && gradient.is_meta(),
                   [&] { return item.key() + " has a gradient without memory"; });
            expect(gradient.sizes() == item.value().sizes(), "of the size of the parameter");
          }
        })) == "");
}

TEST_CASE("gradients of a part are added to as whole ones are", "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  const auto gang = ForkedGang::on_one_node(GENERATE(2, 3));
  const auto averaged_twice = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 0; i < 3; ++i) {
      optimizer.zero_grad();
      rank_loss(ctx, net, 3 * i).backward();
      rank_loss(ctx, net, 3 * i + 1).backward();
      optimizer.step();
      optimizer.step();  // by the same gradients once more
    }
    return values_of(net);
  };
  CHECK(difference(stage, averaged_twice, gang, false, kTolerance) == "");

  const auto accumulated_in_between = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    rank_loss(ctx, net, 0).backward();
    {
      const auto guard = ctx.no_sync();
      rank_loss(ctx, net, 1).backward();
    }
    rank_loss(ctx, net, 2).backward();
    optimizer.step();
    {
      const auto guard = ctx.no_sync();
      rank_loss(ctx, net, 3).backward();
    }
    net->zero_grad();  // of what was never averaged
    rank_loss(ctx, net, 4).backward();
    optimizer.step();
    return values_of(net);
  };
  CHECK(difference(stage, accumulated_in_between, gang, false, kTolerance) == "");
}

TEST_CASE("gradients of a part that a rank or all do not use are as whole ones",
          "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  const auto gang = ForkedGang::on_one_node(2);
  const auto on_one_rank = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(adam(net));
    for (std::uint64_t i = 0; i < 6; ++i) {
      if (i % 3 != 2) optimizer.zero_grad();
      const bool uses_all = (i + static_cast<std::uint64_t>(ctx.rank())) % 2 == 0;
      partial_loss(ctx, net, uses_all ? 3 : 1, i).backward();
      optimizer.step();
    }
    return values_of(net);
  };
  CHECK(difference(stage, on_one_rank, gang, true, kTolerance) == "");

  // The last layer keeps the average that it has, and begins without one after zero_grad.
  const auto by_no_rank = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 0; i < 6; ++i) {
      if (i == 3) optimizer.zero_grad();
      partial_loss(ctx, net, i == 0 ? 3 : 2, i).backward();
      optimizer.step();
    }
    return values_of(net);
  };
  CHECK(difference(stage, by_no_rank, gang, true, kTolerance) == "");

  // A model that takes part on one rank alone.
  const auto model_on_one_rank = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5)), other = ctx.prepare(Net(kWidths, 6));
    auto optimizer = ctx.prepare(sgd(net)), other_optimizer = ctx.prepare(sgd(other));
    for (std::uint64_t i = 0; i < 4; ++i) {
      optimizer.zero_grad();
      if (i % 2 == 0) other_optimizer.zero_grad();
      auto loss = rank_loss(ctx, net, i);
      if (ctx.rank() == 1) loss = loss + rank_loss(ctx, other, i);
      loss.backward();
      optimizer.step();
      other_optimizer.step();
    }
    auto values = values_of(net);
    for (auto& value : values_of(other)) values.push_back(std::move(value));
    return values;
  };
  CHECK(difference(stage, model_on_one_rank, gang, true, kTolerance) == "");
}

TEST_CASE("whole gradients and gradients of a part are clipped by the norm of all",
          "[train][zero][gradients]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const auto ranks = GENERATE(2, 3);
  CHECK(run(ranks, options_with(stage), expect_clipped_as_alone) == "");
}

TEST_CASE("training goes on after a backward that failed on one rank (2)",
          "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  const auto fail = [](Context& ctx, Net& net) {
    auto& weight = net->layers[0]->weight;
    if (ctx.rank() == 0) return rank_loss(ctx, net, 1).backward();
    const auto fails =
        weight.register_hook([](const torch::Tensor&) { throw std::runtime_error("no memory"); });
    try {
      rank_loss(ctx, net, 1).backward();
    } catch (const std::exception&) {
      weight.remove_hook(fails);
      throw;
    }
  };
  CHECK(difference(stage, failing_in_between(fail, true), ForkedGang::on_one_node(2)) == "");
}

TEST_CASE("a gradient that one rank has replaced fails on all ranks, which go on together",
          "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  const auto replace = [](Context& ctx, Net& net) {
    auto& gradient = net->layers[1]->weight.mutable_grad();
    if (ctx.rank() == 1) gradient = gradient * 2;
    rank_loss(ctx, net, 1).backward();
  };
  CHECK(difference(stage, failing_in_between(replace, false), ForkedGang::on_one_node(2)) == "");
}

TEST_CASE("a gradient that is only asked for leaves the averages alone",
          "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  const auto asks = [](Context& ctx) {
    auto net = ctx.prepare(Net(kWidths, 5));
    auto optimizer = ctx.prepare(sgd(net));
    for (std::uint64_t i = 0; i < 2; ++i) {
      optimizer.zero_grad();
      rank_loss(ctx, net, i).backward();
      const auto asked = torch::autograd::grad({rank_loss(ctx, net, 9)}, net->parameters());
      expect(!asked.front().is_meta(), "the gradient that was asked for is whole");
      if (i == 1) rank_loss(ctx, net, 5).backward();
      optimizer.step();
    }
    return values_of(net);
  };
  CHECK(difference(stage, asks, ForkedGang::on_one_node(2), false, kTolerance) == "");
}

TEST_CASE("models whose gradients can not be cut are refused with stages 2 and 3",
          "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   ctx.prepare(net->layers[0]);
                 },
                 stage),
             Contains("parameter weight is in two models"));
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto some = net->parameters();
                   some.pop_back();
                   ctx.prepare(torch::optim::SGD(some, torch::optim::SGDOptions(0.1)));
                 },
                 stage),
             Contains("the optimizer has parameter layer0.weight of a model and not layer2.bias"));
}

TEST_CASE("a step by gradients that are no averages is refused with stages 2 and 3",
          "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto optimizer = ctx.prepare(sgd(net));
                   net = ctx.prepare(net);
                   rank_loss(ctx, net, 0).backward();
                   optimizer.step();
                 },
                 stage),
             Contains("prepare its optimizer again after it"));
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto optimizer = ctx.prepare(sgd(net));
                   {
                     const auto guard = ctx.no_sync();
                     rank_loss(ctx, net, 0).backward();
                   }
                   optimizer.step();
                 },
                 stage),
             Contains("is not an average over the ranks") && Contains("outside of no_sync()"));
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto optimizer = sgd(net);
                   rank_loss(ctx, net, 0).backward();
                   ctx.clip_grad_norm(optimizer, 1);
                 },
                 stage),
             Contains("an optimizer must be what prepare() returned"));
}

TEST_CASE("gradients that were replaced are refused with stages 2 and 3",
          "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  const auto scale = [](Net& net) {
    for (auto& parameter : net->parameters()) parameter.mutable_grad() = parameter.grad() * 0.5;
  };
  CHECK_THAT(error_of(
                 [&](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto optimizer = ctx.prepare(sgd(net));
                   rank_loss(ctx, net, 0).backward();
                   scale(net);
                   optimizer.step();
                 },
                 stage),
             Contains("use ctx.clip_grad_norm() to scale gradients"));
  CHECK_THAT(error_of(
                 [&](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   rank_loss(ctx, net, 0).backward();
                   scale(net);
                   rank_loss(ctx, net, 1).backward();
                 },
                 stage),
             Contains("use ctx.clip_grad_norm() to scale gradients"));
  CHECK_THAT(error_of(
                 [&](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   rank_loss(ctx, net, 0).backward();
                   net = ctx.prepare(net);
                   rank_loss(ctx, net, 1).backward();
                 },
                 stage),
             Contains("Drop them before a model is prepared again"));
}

TEST_CASE("what would work on a stand-in as on a gradient fails", "[train][zero][gradients]") {
  const int stage = GENERATE(2, 3);
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto optimizer = ctx.prepare(sgd(net));
                   rank_loss(ctx, net, 0).backward();
                   optimizer.zero_grad(false);
                 },
                 stage),
             Contains("ZeroTensors are immutable"));
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   auto optimizer = ctx.prepare(sgd(net));
                   rank_loss(ctx, net, 0).backward();
                   torch::nn::utils::clip_grad_value_(net->parameters(), 0.5);
                 },
                 stage),
             Contains("ZeroTensors are immutable"));
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   rank_loss(ctx, net, 0).backward();
                   torch::nn::utils::clip_grad_norm_(net->parameters(), 1);
                 },
                 stage),
             Contains("ZeroTensors are immutable"));
  CHECK_THAT(error_of(
                 [](Context& ctx) {
                   auto net = ctx.prepare(Net(kWidths, 5));
                   torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1));
                   rank_loss(ctx, net, 0).backward();
                   optimizer.step();
                 },
                 stage),
             Contains("meta"));
}
