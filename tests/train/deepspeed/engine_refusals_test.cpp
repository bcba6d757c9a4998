// The configurations, checkpoints and calls that an engine refuses.
#include <troupe/train/deepspeed.hpp>

#include <functional>
#include <stdexcept>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "deepspeed/engine_training.hpp"
#include "support/catch.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"

using namespace engine_training;

namespace {

/// The error that both ranks of two have.
std::string error_with(const ContextOptions& options, const std::function<void(Context&)>& rank) {
  return run(2, options, [&](Context& ctx) {
    std::string what = "none";
    try {
      rank(ctx);
    } catch (const std::exception& error) {
      what = error.what();
    }
    throw std::runtime_error(what);  // both the same
  });
}

}  // namespace

TEST_CASE("an engine does not go on from a checkpoint that no engine wrote", "[train][deepspeed]") {
  const Scratch scratch;
  const auto config = config_of(0, 1);
  REQUIRE(run(1, options_for(config),
              [&](Context& ctx) {
                auto net = ctx.prepare(Net(kWidths, 5));
                auto optimizer = ctx.prepare(adam(net));
                ctx.checkpoint(net, optimizer);
              },
              {.storage = scratch.path()}) == "");
  CHECK_THAT(
      run(1, options_for(config), [&](Context& ctx) { initialize(ctx, Net(kWidths, 5), config); },
          {.from = scratch.path() / "checkpoint_000000"}),
      Contains("model 1 is prepared, and the checkpoint ") &&
          Contains(" was written with 1: give ctx.checkpoint all models, or "));
}

TEST_CASE("an engine refuses a context that multiplies its learning rates", "[train][deepspeed]") {
  const auto config = config_of(0, 2);
  auto options = options_for(config);
  options.scale_learning_rates = LearningRateScaling::Linear;
  CHECK_THAT(
      error_with(options, [&](Context& ctx) { initialize(ctx, Net(kWidths, 5), config); }),
      Contains("whatever the number of ranks: leave ContextOptions::scale_learning_rates at None"));
}

TEST_CASE("ranks whose configurations differ are told so, all of them", "[train][deepspeed]") {
  const auto config = config_of(0, 2);
  CHECK_THAT(
      error_with(options_for(config),
                 [&](Context& ctx) {
                   auto own = config;
                   own.gradient_accumulation_steps = 1 + ctx.rank();
                   initialize(ctx, Net(kWidths, 5), own);
                 }),
      Contains("the ranks prepared different DeepSpeed configurations: on rank 1 option 2 is "
               "\"gradient_accumulation_steps 2\", on rank 0 it is "
               "\"gradient_accumulation_steps 1\""));
}

TEST_CASE("what an engine cannot do is refused on every rank", "[train][deepspeed]") {
  const auto config = config_of(2, 2);
  Net net(kWidths, 5);
  CHECK_THAT(error_with(small_buckets(), [&](Context& ctx) { initialize(ctx, net, config); }),
             Contains("the DeepSpeed configuration says ZeRO stage 2, float32, and the context was "
                      "made with ZeRO stage 0, float32: give the run `.context = "
                      "config.context()`"));
  auto other = config;
  other.mixed_precision = kFloat16;
  auto without_scale = options_for(other);
  without_scale.mixed_precision.loss_scale = {};
  CHECK_THAT(error_with(without_scale, [&](Context& ctx) { initialize(ctx, net, other); }),
             Contains("the context was made with another loss scale"));
  other = config;
  other.optimizer = {};
  CHECK_THAT(error_with(options_for(other), [&](Context& ctx) { initialize(ctx, net, other); }),
             Contains("the DeepSpeed configuration has no optimizer: give it one, or "));
  const auto make = [](auto parameters) { return torch::optim::SGD(parameters, 0.1); };
  CHECK_THAT(
      error_with(options_for(config), [&](Context& ctx) { initialize(ctx, net, config, make); }),
      Contains("leave one of the two away"));
  other = config;
  other.train_batch_size = 7;
  CHECK_THAT(error_with(options_for(other), [&](Context& ctx) { initialize(ctx, net, other); }),
             Contains("train_batch_size (7) is not "));
  CHECK_THAT(error_with(options_for(config),
                        [&](Context& ctx) {
                          auto engine = initialize(ctx, net, config);
                          engine.step();
                        }),
             Contains("step() without a backward() since the last one"));
  other = config;
  other.gradient_accumulation_steps = 1;
  CHECK_THAT(error_with(options_for(other),
                        [&](Context& ctx) {
                          auto engine = initialize(ctx, net, other);
                          engine.backward(torch::ones({}, torch::requires_grad()) * 2);
                          engine.step();
                        }),
             Contains("no parameter of the model has got a gradient since the last update"));
}
