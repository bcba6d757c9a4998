// An engine beside the loop that it stands for, written out in plain LibTorch.
#include <troupe/train/deepspeed.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "deepspeed/engine_training.hpp"
#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "support/net.hpp"
#include "support/rank_logs.hpp"
#include "support/scratch.hpp"
#include "support/zero_training.hpp"

using namespace engine_training;

namespace {

/// The rate of the n-th update: the first two are made at the beginning of the rise.
double rate_of(int update) {
  return kRate * std::min(1.0, std::max(0, update - 1) / double{kRise});
}

void train_updates(Engine& engine, Net& net, int from, int to) {
  const auto& ctx = engine.context();
  for (int number = from * kAccumulated; number < to * kAccumulated; ++number) {
    const auto loss = engine.forward([&] {
      return loss_of(net, ctx.rank(), ctx.world_size(), static_cast<std::uint64_t>(number));
    });
    const bool updates = (number + 1) % kAccumulated == 0;
    expect(engine.is_gradient_accumulation_boundary() == updates, "it knows which step updates");
    engine.backward(loss);
    expect(engine.step() == updates, "the last of three steps updates");
  }
}

/// The same, in one process with the rows of all ranks.
std::vector<torch::Tensor> trained_by_hand(int updates) {
  Net net(kWidths, 5);
  torch::optim::AdamW optimizer(net->parameters(),
                                torch::optim::AdamWOptions(kRate).weight_decay(0.1));
  for (int update = 0; update < updates; ++update) {
    for (int i = 0; i < kAccumulated; ++i) {
      const auto number = static_cast<std::uint64_t>(update * kAccumulated + i);
      (loss_of(net, 0, 1, number) / kAccumulated).backward();
    }
    const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), kMaxNorm);
    expect(norm > kMaxNorm, "gradients are clipped in this test");
    optimizer.param_groups()[0].options().set_lr(rate_of(update));
    optimizer.step();
    optimizer.zero_grad();
  }
  return values_of(net);
}

}  // namespace

TEST_CASE("an engine trains as the loop that it stands for", "[train][deepspeed][zero]") {
  const int stage = GENERATE(0, 1, 2, 3), ranks = GENERATE(1, 2, 3);
  CAPTURE(stage, ranks);
  const auto config = config_of(stage, ranks);
  CHECK(run(ranks, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5 + static_cast<std::uint64_t>(ctx.rank()));  // rank 0's count
          auto engine = initialize(ctx, net, config);
          expect(engine.batch_sizes().train == kRows * kAccumulated, "the batch is of all ranks");
          expect(!engine.gradient_norm(), "there is no norm before the first update");
          train_updates(engine, net, 0, 8);
          expect(engine.global_steps() == 8, "it counts updates");
          expect(engine.gradient_norm().value() > kMaxNorm, "it knows the norm");
          expect(engine.learning_rate() == rate_of(8), "it has the rate of the next update");
          expect_same(whole_values(ctx, net), trained_by_hand(8), 1e-12, "beside the loop");
        }) == "");
}

TEST_CASE("an engine goes on in its schedule from a checkpoint", "[train][deepspeed][zero]") {
  struct Case {
    int stage, ranks, stage_after, ranks_after;
  };
  const auto [stage, ranks, stage_after, ranks_after] =
      GENERATE(Case{0, 1, 0, 1}, Case{2, 2, 3, 3}, Case{3, 2, 1, 2}, Case{1, 3, 0, 1});
  CAPTURE(stage, ranks, stage_after, ranks_after);
  const Scratch scratch;
  const auto config = config_of(stage, ranks);
  REQUIRE(run(ranks, options_for(config),
              [&](Context& ctx) {
                Net net(kWidths, 5);
                auto engine = initialize(ctx, net, config);
                train_updates(engine, net, 0, 4);
                const auto checkpoint = engine.checkpoint();
                expect(checkpoint.directory.empty() == (ctx.rank() != 0), "rank 0 writes it");
                train_updates(engine, net, 4, 5);  // an update that the checkpoint has not
              },
              {.storage = scratch.path()}) == "");
  const auto after = config_of(stage_after, ranks_after);
  CHECK(run(ranks_after, options_for(after),
            [&](Context& ctx) {
              Net net(kWidths, 99);
              auto engine = initialize(ctx, net, after);
              expect(engine.global_steps() == 4, "it knows how many updates there were");
              expect(engine.learning_rate() == rate_of(4), "it goes on in the rise");
              train_updates(engine, net, 4, 8);
              expect_same(whole_values(ctx, net), trained_by_hand(8), 1e-12, "beside the loop");
            },
            {.from = scratch.path() / "checkpoint_000000"}) == "");
}

TEST_CASE("a step that float16 leaves out does not move the schedule", "[train][deepspeed]") {
  const int stage = GENERATE(0, 2);
  auto config = config_of(stage, 2);
  config.gradient_accumulation_steps = 1;
  config.mixed_precision = kFloat16;
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5);
          net->to(torch::kFloat32);
          auto engine = initialize(ctx, net, config);
          const auto x = rows(kRows, kWidths.front(), 10).to(torch::kFloat32);
          const auto loss = [&](double factor) {
            return engine.forward([&] {
              const auto out = net->forward(x);
              expect(out.scalar_type() == torch::kHalf, "forward() is under autocast");
              return out.to(torch::kFloat32).square().mean() * factor;
            });
          };
          engine.backward(loss(1));
          expect(engine.step(), "gradients are finite");
          engine.backward(loss(1));
          expect(engine.step(), "and again");
          expect(engine.learning_rate() == rate_of(2), "the rise has begun");
          engine.backward(loss(ctx.rank() == 1 ? std::numeric_limits<double>::infinity() : 1));
          expect(!engine.step(), "gradients of one rank are not finite");
          expect(engine.skipped_steps() == 1 && engine.global_steps() == 2, "it was left out");
          expect(engine.learning_rate() == rate_of(2), "the rate is what it was before the step");
          engine.backward(loss(1));
          expect(engine.step(), "it goes on");
          expect(engine.learning_rate() == rate_of(3), "and the schedule too");
        }) == "");
}

TEST_CASE("an engine may have an optimizer of the program's own", "[train][deepspeed]") {
  auto config = config_of(0, 2);
  config.optimizer = {};
  config.scheduler =
      OneCycle{.cycle_min_lr = 0.01, .cycle_max_lr = 0.1, .cycle_first_step_size = 2};
  config.gradient_accumulation_steps = 1;
  config.gradient_clipping = 0;
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5);
          net->parameters().back().requires_grad_(false);
          auto engine = initialize(ctx, net, config, [&](auto parameters) {
            expect(parameters.size() + 1 == net->parameters().size(), "trained parameters alone");
            return torch::optim::RMSprop(std::move(parameters), 0.5);
          });
          expect(engine.learning_rate() == 0.01, "the schedule decides");
          engine.backward(loss_of(net, ctx.rank(), ctx.world_size()));
          engine.step();
          expect(std::abs(engine.learning_rate() - 0.055) < 1e-15, "in the middle of the rise");
          expect(!engine.gradient_norm(), "nothing is clipped");
        }) == "");
}

TEST_CASE("a rise without an end of its own ends at the rate of the first group",
          "[train][deepspeed]") {
  auto config = config_of(0, 2);
  config.optimizer = {};
  const bool has_end = GENERATE(false, true);
  auto& schedule = std::get<WarmupLR>(config.scheduler.value());
  schedule.warmup_num_steps = 2;
  if (has_end) schedule.warmup_max_lr = 0.3;
  config.gradient_accumulation_steps = 1;
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5);
          auto engine = initialize(ctx, net, config, [](auto parameters) {
            using torch::optim::OptimizerParamGroup;
            using torch::optim::SGDOptions;
            const auto last = parameters.back();
            parameters.pop_back();
            std::vector<OptimizerParamGroup> groups;
            groups.emplace_back(parameters, std::make_unique<SGDOptions>(0.1));
            groups.emplace_back(std::vector{last}, std::make_unique<SGDOptions>(0.7));
            return torch::optim::SGD(groups, SGDOptions(0.5));
          });
          for (std::uint64_t number = 0; number < 4; ++number) {
            engine.backward(loss_of(net, ctx.rank(), ctx.world_size(), number));
            engine.step();
          }
          for (const auto& group : engine.optimizer().param_groups())
            expect(group.options().get_lr() == (has_end ? 0.3 : 0.1), "of both groups");
        }) == "");
}

TEST_CASE("a cycle moves the betas of Adam", "[train][deepspeed]") {
  auto config = config_of(1, 2);
  config.scheduler =
      OneCycle{.cycle_min_lr = 0.01, .cycle_max_lr = 0.1, .cycle_first_step_size = 2};
  config.gradient_accumulation_steps = 1;
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5);
          auto engine = initialize(ctx, net, config);
          engine.backward(loss_of(net, ctx.rank(), ctx.world_size()));
          engine.step();
          const auto& options = static_cast<torch::optim::AdamWOptions&>(
              engine.optimizer().param_groups()[0].options());
          expect(std::abs(std::get<0>(options.betas()) - 0.85) < 1e-15, "halfway down");
          expect(std::get<1>(options.betas()) == 0.99, "as DeepSpeed has it");
        }) == "");
}

TEST_CASE("the loader of an engine has micro-batches", "[train][deepspeed]") {
  const auto config = config_of(0, 2);
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5);
          const auto engine = initialize(ctx, net, config);
          const Dataset data{torch::rand({96, 2}), torch::rand({96, 1})};
          int batches = 0;
          for (const auto& batch : engine.loader(data, 0)) {
            expect(batch.data.size(0) == kRows / 2, "of so many rows");
            ++batches;
          }
          expect(batches == 4, "a rank has half of the rows");
          int value = 0;
          int& same = engine.forward([&value]() -> int& { return value; });
          expect(&same == &value, "forward() returns what it was given to return");
        }) == "");
}

TEST_CASE("a parameter that two layers share is stepped once", "[train][deepspeed][zero]") {
  const int stage = GENERATE(0, 1, 2);
  CAPTURE(stage);
  auto config = config_of(stage, 2);
  config.optimizer =
      deepspeed::OptimizerOptions{.type = deepspeed::OptimizerOptions::Type::SGD, .lr = 0.1};
  config.scheduler = {};
  config.gradient_accumulation_steps = 1;
  config.gradient_clipping = 100;
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          struct Tied : torch::nn::Module {
            torch::Tensor weight = register_parameter("weight", torch::ones({2}, torch::kFloat64));
            torch::Tensor again = register_parameter("again", weight);
          };
          auto model = std::make_shared<Tied>();
          auto engine = initialize(ctx, model, config);
          engine.backward((model->weight + model->again).sum());
          engine.step();
          expect(torch::allclose(model->weight, torch::full({2}, 1 - 0.1 * 2, torch::kFloat64)),
                 "by the sum of both gradients");
          expect(std::abs(engine.gradient_norm().value() - 2 * std::sqrt(2)) < 1e-12,
                 "which count once in the norm");
        }) == "");
}

TEST_CASE("ranks go on after an exception in the backward of a step that updates",
          "[train][deepspeed]") {
  auto config = config_of(0, 2);
  const bool half = GENERATE(false, true);
  if (half) config.mixed_precision = kFloat16;
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5);
          net->to(torch::kFloat32);
          auto engine = initialize(ctx, net, config);
          const auto x = rows(kRows, kWidths.front(), 10).to(torch::kFloat32);
          const auto loss = [&] {
            return engine.forward(
                [&] { return net->forward(x).to(torch::kFloat32).square().mean(); });
          };
          for (int micro = 0; micro < kAccumulated - 1; ++micro) {
            engine.backward(loss());
            engine.step();
          }
          auto last = loss();
          if (ctx.rank() == 1) {
            net->parameters().front().register_hook([](const torch::Tensor& gradient) {
              if (gradient.defined()) throw std::runtime_error("no gradient");
              return gradient;
            });
          }
          thrown_by<std::exception>([&] { engine.backward(last); });
          engine.zero_grad();
          for (const auto& parameter : net->parameters())
            expect(!parameter.grad().defined(), "gradients are dropped");
          expect(!engine.is_gradient_accumulation_boundary(), "the step begins anew");
        }) == "");
}

TEST_CASE("gradients that an engine has dropped are not in its next update", "[train][deepspeed]") {
  const auto config = config_of(1, 2);
  CHECK(run(2, options_for(config), [&](Context& ctx) {
          Net net(kWidths, 5);
          auto engine = initialize(ctx, net, config);
          for (int micro = 0; micro < kAccumulated - 1; ++micro) {
            engine.backward(100 * loss_of(net, ctx.rank(), ctx.world_size(), 7));
            engine.step();
          }
          engine.zero_grad();
          train_updates(engine, net, 0, 3);
          expect_same(values_of(net), trained_by_hand(3), 1e-12, "beside the loop");
        }) == "");
}

TEST_CASE("keys without an effect are logged, on one rank", "[train][deepspeed]") {
  auto config = config_of(0, 2);
  config.without_effect = {"steps_per_print", "zero_optimization.overlap_comm"};
  const RankLogs logs(2);
  REQUIRE(run(2, options_for(config), [&](Context& ctx) {
            logs.take_over(ctx.rank());
            initialize(ctx, Net(kWidths, 5), config);
          }) == "");
  CHECK(logs.lines("keys of the DeepSpeed configuration that have no effect in Troupe: "
                   "steps_per_print, zero_optimization.overlap_comm")
            .size() == 1);
}
