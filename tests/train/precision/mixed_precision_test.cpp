// Trainings under autocast and with a loss scale, with and without ZeRO. The tests show in which
// type operators compute and parameters stay, and what a loss scale does to gradients and steps.
#include <troupe/train/context.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/utils.h>

#include "checkpoint/directory.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/precision_training.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/test_member.hpp"
#include "support/zero_training.hpp"

#include "scaled_training.hpp"

using namespace precision_training;

TEST_CASE("operators under autocast compute in the smaller type, and the parameters stay",
          "[train][precision]") {
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const int stage = GENERATE(0, 3);
  CHECK(run(2, options_of(type, stage), [type](Context& ctx) { expect_autocast(ctx, type); }) ==
        "");
}

TEST_CASE("a step under autocast is seen by the layers that come after it", "[train][precision]") {
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  CHECK(run(1, options_of(type), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          net->to(torch::kFloat32);
          auto optimizer = ctx.prepare(sgd(net));
          const auto x = rows(kRows, kWidths.front(), 10).to(torch::kFloat32);
          const auto autocast = ctx.autocast();  // for too long
          const auto before = net->forward(x);
          ctx.scaled(before.to(torch::kFloat32).square().mean()).backward();
          optimizer.step();
          const auto after = net->forward(x);
          expect(!torch::equal(before, after), "the layers compute with what the step made");
        }) == "");
}

TEST_CASE("autocast does nothing where nobody asked for a smaller type", "[train][precision]") {
  CHECK(run(1, options_of(Type::Float32), [](Context& ctx) {
          const auto autocast = ctx.autocast();
          expect(!at::autocast::is_autocast_enabled(torch::kCPU), "it is off");
          const auto loss = torch::ones({});
          expect(ctx.scaled(loss).is_same(loss), "the loss is not scaled");
          expect(ctx.loss_scale() == 1, "the scale is 1");
        }) == "");
}

TEST_CASE("a loss scale that is a power of two changes no bit of a training",
          "[train][precision][zero]") {
  const int stage = GENERATE(0, 1, 2, 3), ranks = GENERATE(1, 2, 3);
  CAPTURE(stage, ranks);
  const KeptValues plain;
  REQUIRE(run(ranks, options_of(Type::Float32, stage),
              [&](Context& ctx) { plain.keep(ctx, train_scaled(ctx)); }) == "");
  CHECK(run(ranks, options_of(Type::Float16, stage, {.initial = 1024, .window = 2}),
            [&](Context& ctx) {
              plain.expect_same_as(train_scaled(ctx), 0, "scaled");
              expect(ctx.loss_scale() == 4096,
                     [&] { return fmt::format("scale {}", ctx.loss_scale()); });
            }) == "");
}

TEST_CASE("a gradient of one rank that is not finite has all ranks leave the step out",
          "[train][precision][zero]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const auto wrong = GENERATE(std::numeric_limits<double>::infinity(), std::nan(""));
  CHECK(run(3, options_of(Type::Float16, stage, {.initial = 1024, .hysteresis = 1}),
            [&](Context& ctx) { expect_step_left_out(ctx, wrong); }) == "");
}

TEST_CASE("a gradient that only this rank has is looked at by all", "[train][precision]") {
  // An optimizer may have parameters of no model that was prepared, beside those of one.
  CHECK(run(2, options_of(Type::Float16), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          auto own = torch::ones({3}, torch::requires_grad());
          auto optimizer = ctx.prepare(optim::SGD({net->parameters().front(), own}, 0.1));
          const auto factor = ctx.rank() == 0 ? std::numeric_limits<float>::infinity() : 1.0F;
          ctx.scaled((own * factor).sum()).backward();
          optimizer.step();
          expect(own.eq(1).all().item<bool>(), "no rank steps");
          expect(ctx.skipped_steps() == 1, "all count it");
        }) == "");
}

TEST_CASE("a run goes on with the loss scale of its checkpoint", "[train][precision][zero]") {
  const int stage = GENERATE(0, 3);
  const Scratch scratch;
  const auto run_from = [&](const fs::path& from, const std::function<void(Context&)>& rank) {
    return run(2, options_of(Type::Float16, stage, {.initial = 1024, .window = 2}), rank,
               {.storage = scratch.path(), .from = from});
  };
  REQUIRE(run_from({}, [&](Context& ctx) {
            auto net = ctx.prepare(Net(kWidths, 5));
            auto optimizer = ctx.prepare(adam(net));
            for (std::uint64_t step = 0; step < 4; ++step) {
              optimizer.zero_grad();
              auto loss = loss_of(net, ctx.rank(), ctx.world_size(), step);
              if (step == 2) loss = loss * std::nan("");
              ctx.scaled(loss).backward();
              optimizer.step();
            }
            ctx.checkpoint(net, optimizer);
          }) == "");
  // Its last step but one had an overflow: the patience that this took is still gone.
  CHECK(run_from(latest_checkpoint(scratch.path()), [&](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          std::vector<double> scales;
          for (const bool is_wrong : {true, false, false, false}) {
            optimizer.zero_grad();
            auto loss = loss_of(net, ctx.rank(), ctx.world_size());
            if (is_wrong) loss = loss * std::numeric_limits<double>::infinity();
            ctx.scaled(loss).backward();
            scales.push_back(ctx.loss_scale());
            optimizer.step();
          }
          expect(scales == std::vector<double>{2048, 1024, 1024, 2048},
                 [&] { return fmt::format("scales {}", fmt::join(scales, ", ")); });
        }) == "");
}

TEST_CASE("several optimizers step after one scaled loss, one of them in a closure",
          "[train][precision]") {
  CHECK(run(2, options_of(Type::Float16, 0, {.initial = 1024, .hysteresis = 1}), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5)), other = ctx.prepare(Net(kWidths, 6));
          auto first = ctx.prepare(sgd(net)), second = ctx.prepare(sgd(other));
          auto plain = Net(kWidths, 5), plain_other = Net(kWidths, 6);
          auto plain_first = sgd(plain), plain_second = sgd(plain_other);
          const auto loss_of_both = [](Net& a, Net& b) {
            return loss_of(a, 0, 1) + loss_of(b, 0, 1);
          };
          for (int step = 0; step < 3; ++step) {
            first.zero_grad();
            second.zero_grad();
            second.step([&] {
              const auto loss = loss_of_both(net, other);
              ctx.scaled(loss).backward();
              return loss;
            });
            first.step();
            plain_first.zero_grad();
            plain_second.zero_grad();
            loss_of_both(plain, plain_other).backward();
            plain_first.step();
            plain_second.step();
          }
          expect_same(values_of(net), values_of(plain), 1e-12, "the first");
          expect_same(values_of(other), values_of(plain_other), 1e-12, "the second");
        }) == "");
}

TEST_CASE("a step that is not made after clipping leaves the next one whole",
          "[train][precision]") {
  CHECK(run(2, options_of(Type::Float16, 0, {.initial = 1024, .hysteresis = 1}), [](Context& ctx) {
          auto net = ctx.prepare(Net(kWidths, 5));
          auto optimizer = ctx.prepare(adam(net));
          for (int step = 0; step < 3; ++step) {
            optimizer.zero_grad();
            auto loss = loss_of(net, ctx.rank(), ctx.world_size());
            if (step == 1) loss = loss * std::numeric_limits<double>::infinity();
            ctx.scaled(loss).backward();
            if (!std::isfinite(ctx.clip_grad_norm(optimizer, 1))) continue;
            optimizer.step();
          }
          expect(ctx.skipped_steps() == 1, "it is counted");
          expect(ctx.loss_scale() == 512,
                 [&] { return fmt::format("scale {}", ctx.loss_scale()); });
        }) == "");
}

TEST_CASE("gradients that are not divided by the loss scale are not stepped with",
          "[train][precision][zero]") {
  const auto error = [](const std::function<void(Context&, Net&)>& rank) {
    const auto outcomes = ForkedGang::on_one_node(2).run([&](GangContext& gang) {
      TestMember member(gang);
      Context ctx(member, options_of(Type::Float16));
      auto net = ctx.prepare(Net(kWidths, 5));
      rank(ctx, net);
    });
    return outcomes.front().type + ": " + outcomes.front().message;
  };
  const auto loss = [](Context& ctx, Net& net) {
    return loss_of(net, ctx.rank(), ctx.world_size());
  };
  CHECK_THAT(error([&](Context& ctx, Net& net) {
               auto optimizer = ctx.prepare(adam(net));
               loss(ctx, net).backward();
               optimizer.step();
             }),
             Contains("no loss was scaled since the last step or zero_grad() of this optimizer") &&
                 Contains("write ctx.scaled(loss).backward()"));
  CHECK_THAT(error([&](Context& ctx, Net& net) {
               auto optimizer = ctx.prepare(adam(net));
               ctx.scaled(loss(ctx, net)).backward();
               ctx.clip_grad_norm(optimizer, 1);
               ctx.scaled(loss(ctx, net)).backward();
               optimizer.step();
             }),
             Contains("a loss was scaled after clip_grad_norm() had divided the gradients"));
  CHECK_THAT(error([&](Context& ctx, Net& net) {
               auto optimizer = adam(net);
               ctx.scaled(loss(ctx, net)).backward();
               ctx.clip_grad_norm(optimizer, 1);
             }),
             Contains("there is no prepared optimizer that would divide its gradients"));
  CHECK_THAT(error([&](Context& ctx, Net& net) {
               optim::Adam optimizer = ctx.prepare(adam(net));
               ctx.scaled(loss(ctx, net)).backward();
             }),
             Contains("there is no prepared optimizer"));
  CHECK_THAT(error([&](Context& ctx, Net& net) {
               auto optimizer = ctx.prepare(adam(net));
               auto other = adam(net);
               ctx.checkpoint(net, other);
             }),
             Contains("must be what prepare() returned"));
  CHECK_THAT(error([&](Context& ctx, Net& net) { ctx.prepare(optim::LBFGS(net->parameters())); }),
             Contains("an LBFGS computes the loss several times"));
}

TEST_CASE("a smaller type that is asked for with options that cannot be is refused",
          "[train][precision]") {
  CHECK_THAT(run(1, options_of(Type::Float16, 0, {.window = 0}), [](Context&) {}),
             Contains("ContextOptions::mixed_precision.loss_scale.window is 0"));
  CHECK(run(1, options_of(Type::BFloat16, 0, {.window = 0}), [](Context&) {}) ==
        "");  // has no scale
}
