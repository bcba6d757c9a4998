// Models that a run returns, and that tasks and actors are given.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <memory>
#include <string>
#include <utility>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "guard.hpp"
#include "support/catch.hpp"
#include "support/net.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using troupe::test::kGuard;

namespace {

/// Has a default constructor, a buffer, and a weight under two names.
struct CurveImpl : torch::nn::Module {
  explicit CurveImpl(std::int64_t width = 8)
      : net(register_module("net", Net(std::vector<std::int64_t>{3, width, 1}))),
        norm(register_module("norm", torch::nn::BatchNorm1d(1))),
        tied(register_module("tied", net->layers[0])) {
    to(torch::kFloat64);
  }
  torch::Tensor forward(const torch::Tensor& x) { return norm->forward(net->forward(x)); }
  Net net;
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear tied;
};
TORCH_MODULE(Curve);

struct Steps {
  int count = 2;
  std::int64_t width = 8;
};

torch::Tensor points() { return rows(12, 3, 5); }

/// Trains, reports what the model gives for points() on rank 0, and leaves it in evaluation mode.
template <class Model>
void fit(train::Context& ctx, Model& model, int steps) {
  ctx.prepare(model);
  auto each_once = model->net->parameters();
  for (const auto& parameter : model->norm->parameters()) each_once.push_back(parameter);
  auto optimizer = ctx.prepare(torch::optim::SGD(each_once, 0.1));
  const auto x = points();
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    const auto own = part(x, ctx.rank(), ctx.world_size());
    auto loss = torch::nn::functional::mse_loss(model->forward(own), own.sum(1, true)) +
                model->tied->forward(own).square().mean();
    loss.backward();
    optimizer.step();
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  ctx.report({{"output", model->forward(x).sum().template item<double>()}});
}

Curve fit_holder(train::Context& ctx, const Steps& steps) {
  Curve model;
  fit(ctx, model, steps.count);
  return model;
}

std::shared_ptr<CurveImpl> fit_pointer(train::Context& ctx, const Steps& steps) {
  auto model = std::make_shared<CurveImpl>();
  fit(ctx, model, steps.count);
  return model;
}

train::Weights fit_weights(train::Context& ctx, const Steps& steps) {
  Curve model(steps.width);
  fit(ctx, model, steps.count);
  return ctx.weights(model);
}

struct Both {
  Curve model = nullptr;
  double loss = 0;
};
Both fit_both(train::Context& ctx, const Steps& steps) {
  Both both{.model = Curve(steps.width)};
  fit(ctx, both.model, steps.count);
  return both;
}

/// No tensor tells it from a CurveImpl.
struct SteepCurveImpl : CurveImpl {};
std::shared_ptr<CurveImpl> return_derived(train::Context& ctx, const Steps&) {
  return ctx.prepare(std::make_shared<SteepCurveImpl>());
}
Curve fit_wide(train::Context& ctx, const Steps& steps) {
  Curve model(steps.width);
  fit(ctx, model, steps.count);
  return model;
}
Curve return_none(train::Context&, const Steps&) { return nullptr; }

train::RunOptions two_ranks(int stage) {
  return {.workers = 2, .where = train::Where::ThisNode, .context = {.zero = {.stage = stage}}};
}

/// Forks no rank after LibTorch has run here: the sum is made by a task.
double output_of(const Curve& model) {
  const torch::NoGradGuard no_grad;
  return model.ptr()->forward(points()).sum().item<double>();
}
double output_of_weights(const train::Weights& weights, std::int64_t width) {
  Curve model(width);
  train::load(model, weights);
  model->eval();
  return output_of(model);
}
std::string why_not_loaded(const train::Weights& weights, std::int64_t width) {
  Curve model(width);
  try {
    train::load(model, weights);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "loaded";
}
Curve twice(Curve model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->net->parameters()) parameter.mul_(2);
  return model;
}
std::vector<double> sums_of(const Curve& model) {
  return {model->net->layers[1]->weight.sum().item<double>(), model->is_training() ? 1.0 : 0.0,
          model->tied->weight.is_same(model->net->layers[0]->weight) ? 1.0 : 0.0};
}

}  // namespace

TEST_CASE("a run returns the model that its function has trained", "[train][run][model]") {
  const int stage = GENERATE(0, 1, 3);
  const auto result = train::run<fit_holder>({}, two_ranks(stage));
  REQUIRE(result.value);
  const double output = result.history.at(0).metrics.at("output");
  const auto cluster = init({.cpus = 1});
  CHECK(task<output_of>(*result.value).get(kGuard) == Approx(output).epsilon(1e-12));
  CHECK(task<sums_of>(*result.value).get(kGuard).at(1) == 0);  // it is in evaluation mode
  CHECK(task<sums_of>(*result.value).get(kGuard).at(2) == 1);
}

TEST_CASE("a run returns a model by its pointer", "[train][run][model]") {
  const int stage = GENERATE(0, 3);
  const auto result = train::run<fit_pointer>({}, two_ranks(stage));
  REQUIRE(result.value);
  const double output = result.history.at(0).metrics.at("output");
  const auto cluster = init({.cpus = 1});
  CHECK(task<output_of>(Curve(*result.value)).get(kGuard) == Approx(output).epsilon(1e-12));
}

TEST_CASE("weights that a run returns are loaded into a model of any constructor",
          "[train][run][model]") {
  const int stage = GENERATE(0, 2, 3);
  const auto result = train::run<fit_weights>({.width = 5}, two_ranks(stage));
  const double output = result.history.at(0).metrics.at("output");
  const auto cluster = init({.cpus = 1});
  const auto weights = *result.value;
  CHECK(task<output_of_weights>(weights, 5).get(kGuard) == Approx(output).epsilon(1e-12));
  CHECK(task<why_not_loaded>(weights, 6).get(kGuard) ==
        "the weights are of another model: 'net.layer0.weight' has the shape [6, 3] in the model "
        "and [5, 3] in the weights");

  auto fewer = weights;
  fewer.tensors.erase("norm.running_mean");
  CHECK(task<why_not_loaded>(fewer, 5).get(kGuard) ==
        "the weights are of another model: they have no 'norm.running_mean'");
  auto more = weights;
  more.tensors["head"] = more.tensors.at("norm.bias");
  CHECK(task<why_not_loaded>(more, 5).get(kGuard) ==
        "the weights are of another model: the model has no 'head'");
  auto untied = weights;
  untied.tensors["tied.weight"] = untied.tensors.at("net.layer0.weight") + 1;
  CHECK(task<why_not_loaded>(untied, 5).get(kGuard) ==
        "the weights are of another model: 'tied.weight' is not in the model as a tensor of its "
        "own");
}

TEST_CASE("tasks take models and return them", "[train][model]") {
  const auto cluster = init({.cpus = 1});
  const auto model = task<twice>(Curve()).get(kGuard);
  const auto before = task<sums_of>(Curve()).get(kGuard);
  const auto after = task<sums_of>(model).get(kGuard);
  CHECK(after.at(0) == Approx(2 * before.at(0)));
  CHECK(after.at(1) == 1);  // in training mode, as it was
}

TEST_CASE("a function may return no model, or one among other things", "[train][run][model]") {
  const auto none = train::run<return_none>({}, two_ranks(GENERATE(0, 3)));
  REQUIRE(none.value);
  CHECK_FALSE(*none.value);
  const auto both = train::run<fit_both>({}, two_ranks(1));
  CHECK(both.value->model);
}

TEST_CASE("a model that cannot be made again by its receiver says what to return instead",
          "[train][run][model]") {
  CHECK_THROWS_WITH(train::run<fit_both>({.width = 5}, two_ranks(0)),
                    Contains("'net.layer0.weight' has the shape [8, 3] in the model and [5, 3]") &&
                        Contains("send train::Weights and load() it"));
  CHECK_THROWS_WITH(train::run<fit_wide>({.width = 5}, two_ranks(3)),
                    Contains("'net.layer0.weight' has the shape [8, 3] in the model and [5, 3]") &&
                        Contains("send train::Weights and load() it"));
  const int stage = GENERATE(0, 3);
  CHECK_THROWS_WITH(train::run<return_derived>({}, two_ranks(stage)),
                    Contains("cannot travel through a pointer to a class that it is derived from"));
  CHECK_THROWS_WITH(train::run<fit_both>({}, two_ranks(3)),
                    Contains("with stage 3 of ZeRO, use ctx.weights(model) on all ranks"));
}
