// Learning rates that are multiplied by the number of ranks.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <cmath>
#include <filesystem>

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/net.hpp"
#include "support/scratch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using train::LearningRateScaling;

namespace {

struct Rate {
  double lr = 0.1;
  bool is_set_by_program = false;
};

/// Reports the rates of an optimizer of two groups, the second of which has twice the rate, and the
/// rate of a group that would be added.
void tell_rates(train::Context& ctx, const Rate& rate) {
  auto net = ctx.prepare(Net(std::vector<std::int64_t>{2, 2, 1}));
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(net->layers[0]->parameters());
  groups.emplace_back(net->layers[1]->parameters(),
                      std::make_unique<torch::optim::SGDOptions>(2 * rate.lr));
  auto optimizer = ctx.prepare(torch::optim::SGD(groups, rate.lr));
  const auto lr = [&](std::size_t group) {
    return optimizer.param_groups()[group].options().get_lr();
  };
  if (rate.is_set_by_program) {
    auto& options = optimizer.param_groups()[1].options();
    options.set_lr(0.001 * ctx.learning_rate_scale());
  }
  // What a step does where each gradient is 1.
  const auto sum = [&] { return net->layers[0]->bias.sum().item<double>(); };
  const double before = sum();
  (net->layers[0]->weight.sum() + net->layers[0]->bias.sum() + net->layers[1]->weight.sum() +
   net->layers[1]->bias.sum())
      .backward();
  optimizer.step();
  const Metrics seen{{"first", lr(0)},
                     {"second", lr(1)},
                     {"default", optimizer.defaults().get_lr()},
                     {"scale", ctx.learning_rate_scale()},
                     {"step", (before - sum()) / 2}};
  ctx.report(seen, ctx.checkpoint(net, optimizer));
}

train::RunOptions ranks(int count, LearningRateScaling scaling, int stage = 0) {
  return {.workers = count,
          .where = train::Where::ThisNode,
          .context = {.zero = {.stage = stage}, .scale_learning_rates = scaling}};
}

Metrics seen_by(const Rate& rate, const train::RunOptions& options) {
  return train::run<tell_rates>(rate, options).history.at(0).metrics;
}

}  // namespace

TEST_CASE("learning rates are multiplied by the number of ranks, or by its root",
          "[train][run][learning rate]") {
  const auto [scaling, factor] = GENERATE(
      table<LearningRateScaling, double>({{LearningRateScaling::None, 1},
                                          {LearningRateScaling::Linear, 3},
                                          {LearningRateScaling::SquareRoot, std::sqrt(3)}}));
  const int stage = GENERATE(0, 3);
  const auto seen = seen_by({.lr = 0.1}, ranks(3, scaling, stage));
  CHECK(seen.at("step") == Approx(0.1 * factor));
  CHECK(seen.at("first") == Approx(0.1 * factor));
  CHECK(seen.at("second") == Approx(0.2 * factor));
  CHECK(seen.at("default") == Approx(0.1 * factor));
  CHECK(seen.at("scale") == Approx(factor));
}

TEST_CASE("a run that continues with other ranks has the checkpoint's rates, as its ranks need",
          "[train][run][learning rate]") {
  const Scratch storage;
  auto options = ranks(2, LearningRateScaling::Linear);
  options.storage = storage.path();
  const auto begun = train::run<tell_rates>({.lr = 0.1, .is_set_by_program = true}, options);
  CHECK(begun.history.at(0).metrics.at("second") == Approx(0.002));

  const auto [count, scaling, factor] =
      GENERATE(table<int, LearningRateScaling, double>({{1, LearningRateScaling::Linear, 1},
                                                        {2, LearningRateScaling::Linear, 2},
                                                        {4, LearningRateScaling::Linear, 4},
                                                        {2, LearningRateScaling::None, 1}}));
  auto more = ranks(count, scaling);
  more.restore_from = begun.checkpoint;
  const auto seen = seen_by({.lr = 0.7}, more);  // the checkpoint's count
  CHECK(seen.at("first") == Approx(0.1 * factor));
  CHECK(seen.at("second") == Approx(0.001 * factor));
  CHECK(seen.at("default") == Approx(0.7 * factor));  // which no checkpoint has
}

TEST_CASE("a run that takes over another's checkpoint keeps its own rates, multiplied",
          "[train][run][learning rate]") {
  const Scratch storage;
  auto options = ranks(2, LearningRateScaling::Linear);
  options.storage = storage.path();
  const auto other = train::run<tell_rates>({.lr = 0.1}, options);

  auto cluster = init({.cpus = 2});
  const troupe::detail::RunInfo info{
      .restore_from = other.checkpoint, .reconfigured = true, .settings = options.context};
  troupe::detail::TrialRun<tell_rates> run(
      gang<troupe::detail::TrainableWorker<tell_rates>>({.size = 2}, Rate{.lr = 0.7}, info));
  const auto event = run.wait();
  CHECK(event.metrics.at("first") == Approx(1.4));
  CHECK(event.metrics.at("second") == Approx(2.8));
  CHECK(event.metrics.at("default") == Approx(1.4));
  run.answer(Verdict::Continue);
  CHECK(run.wait().returned);
}
