// Checkpoints of trainings with master weights. A checkpoint has the parameters' values in float32,
// and a run that continues from it begins with them.
#include <troupe/train/context.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <torch/optim/sgd.h>

#include "checkpoint/directory.hpp"
#include "support/catch.hpp"
#include "support/master_weights_training.hpp"
#include "support/net.hpp"
#include "support/parameter_values.hpp"
#include "support/scratch.hpp"
#include "support/small_training.hpp"
#include "support/zero_training.hpp"

using namespace master_weights_training;

TEST_CASE("a run goes on with the master weights of its checkpoint, at any stage",
          "[train][precision][zero]") {
  const auto type = GENERATE(Type::BFloat16, Type::Float16);
  const auto [before, after, ranks] =
      GENERATE(table<int, int, int>({{0, 3, 2}, {3, 1, 2}, {2, 0, 1}, {1, 2, 2}}));
  CAPTURE(static_cast<int>(type), before, after, ranks);
  const Scratch scratch;
  const KeptValues last;
  REQUIRE(run(2, options_with_masters(type, before),
              [&](Context& ctx) {
                auto net = ctx.prepare(float_net());
                auto optimizer = ctx.prepare(adam(net));
                for (std::uint64_t number = 0; number < 6; ++number) {
                  if (number == 3) ctx.checkpoint(net, optimizer);
                  same_step(ctx, net, optimizer, number);
                }
                last.keep(ctx, whole_values(ctx, net));
              },
              {.storage = scratch.path()}) == "");
  CHECK(run(ranks, options_with_masters(type, after),
            [&](Context& ctx) {
              auto made = Net(kWidths, 6);  // whose values the checkpoint has
              made->to(ctx.rank() == 0 ? torch::kFloat32 : scalar(type));  // either will do
              auto net = ctx.prepare(made);
              auto optimizer = ctx.prepare(adam(net));
              for (std::uint64_t number = 3; number < 6; ++number)
                same_step(ctx, net, optimizer, number);
              last.expect_same_as(whole_values(ctx, net), 0, "a run that went on");
            },
            {.from = latest_checkpoint(scratch.path())}) == "");
}

TEST_CASE("a checkpoint with master weights is one of a run without, and the other way round",
          "[train][precision]") {
  const bool first_has = GENERATE(false, true);
  const Scratch scratch;
  REQUIRE(run(1, options_with_masters(Type::BFloat16, 0, first_has),
              [&](Context& ctx) {
                auto net = ctx.prepare(float_net());
                auto optimizer = ctx.prepare(adam(net));
                same_step(ctx, net, optimizer, 0);
                ctx.checkpoint(net, optimizer);
              },
              {.storage = scratch.path()}) == "");
  const auto saved = latest_checkpoint(scratch.path());
  const Scratch again;
  CHECK(run(1, options_with_masters(Type::BFloat16, 0, !first_has),
            [&](Context& ctx) {
              auto net = ctx.prepare(Net(kWidths, 6));
              net->to(torch::kFloat32);
              auto optimizer = ctx.prepare(adam(net));
              ctx.checkpoint(net, optimizer);
              expect_saved(ctx, again.path(), saved_in(scratch.path()));
              same_step(ctx, net, optimizer, 1);
            },
            {.storage = again.path(), .from = saved}) == "");
}

TEST_CASE("a checkpoint before any optimizer has the values that the model was given",
          "[train][precision][zero]") {
  const int stage = GENERATE(0, 3);
  const Scratch scratch;
  CHECK(run(2, options_with_masters(Type::BFloat16, stage),
            [&](Context& ctx) {
              auto given = float_net();
              const auto before = values_of(given);
              auto net = ctx.prepare(given);
              ctx.checkpoint(net);
              expect_saved(ctx, scratch.path(), before);
              const auto small = whole_values(ctx, net);
              const auto write = [&](double factor) {
                const torch::NoGradGuard no_grad;
                const auto whole = ctx.gathered(net);
                for (std::size_t i = 0; i < small.size(); ++i)
                  net->parameters()[i].copy_(small[i] * factor);
              };
              write(2);
              ctx.checkpoint(net);
              auto twice = small;
              for (auto& value : twice) value = (value * 2).to(torch::kFloat32);
              expect_saved(ctx, scratch.path(), twice);
              write(1);  // and the first checkpoint with them has left no trace
              auto optimizer = ctx.prepare(adam(net));
              ctx.checkpoint(net, optimizer);
              expect_saved(ctx, scratch.path(), before);
            },
            {.storage = scratch.path()}) == "");
}

TEST_CASE("an optimizer begins with what an earlier one has left, rounded", "[train][precision]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const Scratch scratch;
  CHECK(run(2, options_with_masters(Type::BFloat16, stage),
            [&](Context& ctx) {
              auto net = ctx.prepare(float_net());
              {
                auto first = ctx.prepare(adam(net));
                same_step(ctx, net, first, 0);
              }
              auto second = ctx.prepare(optim::SGD(net->parameters(), 0.5));
              ctx.checkpoint(net, second);
              auto rounded = whole_values(ctx, net);
              for (auto& value : rounded) value = value.to(torch::kFloat32);
              expect_saved(ctx, scratch.path(), rounded);
            },
            {.storage = scratch.path()}) == "");
}

TEST_CASE("a checkpoint has the master weights of the optimizer that was prepared last",
          "[train][precision]") {
  const int stage = GENERATE(0, 1);
  const Scratch scratch;
  CHECK(run(2, options_with_masters(Type::BFloat16, stage),
            [&](Context& ctx) {
              auto net = ctx.prepare(float_net());
              auto first = ctx.prepare(adam(net));
              same_step(ctx, net, first, 0);
              ByHand by_hand(ctx, Type::BFloat16, plain_sgd_of);
              const auto between = values_of(net);
              for (std::size_t i = 0; i < between.size(); ++i) {
                by_hand.net->parameters()[i].detach().copy_(between[i]);
                by_hand.masters[i].detach().copy_(between[i]);
              }
              auto second = ctx.prepare(optim::SGD(net->parameters(), 0.5));
              same_step(ctx, net, second, 1);
              by_hand.step(ctx, {1}, 1);
              ctx.checkpoint(net, second);
              expect_saved(ctx, scratch.path(), by_hand.masters);
            },
            {.storage = scratch.path()}) == "");
}
