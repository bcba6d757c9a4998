// The first training run, and a search of its learning rate. Two ranks fit a plane to points with
// LibTorch: each sees its part of the points, and their gradients are averaged. Then the same
// function is run with many learning rates, and bad ones are stopped early.
//
//   train_and_search [--address HOST:PORT]
//
// How the trials go is shown on standard error. It prints:
//
//   20 epochs on 2 ranks: the loss is 0.00
//   the best of 20 learning rates: the loss is 0.00
// [program]
#include <iomanip>
#include <iostream>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <troupe/train/context.hpp>
#include <troupe/train/run.hpp>
#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

namespace train = troupe::train;
namespace tune = troupe::tune;

namespace {

struct Config {
  double lr = 0.1;
  int epochs = 20;
};

/// Points of the plane z = 2 x - y + 0.5.
train::Dataset points() {
  torch::manual_seed(0);
  const auto places = torch::rand({256, 2});
  return {places, places.matmul(torch::tensor({{2.0F}, {-1.0F}})) + 0.5};
}

double step(torch::nn::Linear& model, torch::optim::Optimizer& optimizer,
            const train::Batch& batch) {
  optimizer.zero_grad();
  const auto loss = torch::nn::functional::mse_loss(model->forward(batch.data), batch.target);
  loss.backward();  // When it returns, the gradients are averages over all ranks.
  optimizer.step();
  return loss.item<double>();
}

// [fit]
double fit(train::Context& ctx, const Config& config) {  // runs on every rank
  auto model = ctx.prepare(torch::nn::Linear(2, 1));     // rank 0's weights, averaged gradients
  auto optimizer = ctx.prepare(torch::optim::SGD(model->parameters(), config.lr));
  double loss = 0;
  for (int epoch : ctx.epochs(config.epochs)) {
    for (auto& batch : ctx.loader(points(), 16, epoch)) loss = step(model, optimizer, batch);
    ctx.report({{"loss", loss}}, ctx.checkpoint(model, optimizer));
  }
  return loss;
}
// [/fit]

int train_and_search() {
  // [run]
  auto result = train::run<fit>(Config{.lr = 0.5}, {.workers = 2});
  // [/run]
  std::cout << result.history.size() << " epochs on 2 ranks: the loss is " << std::fixed
            << std::setprecision(2) << *result.value << '\n';
  // [sweep]
  auto results = tune::run<fit>({.space = {{"lr", tune::loguniform(1e-3, 1.0)}},
                                 .trials = 20,
                                 .metric = "loss",
                                 .mode = tune::Min,
                                 .scheduler = tune::asha({.max_t = 20, .eta = 3}),
                                 .each = {.workers = 2}});
  // [/sweep]
  if (const int code = results.exit_code()) return code;
  std::cout << "the best of " << results.trials().size() << " learning rates: the loss is "
            << results.best().value() << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    return train_and_search();
  } catch (const std::exception& error) {
    std::cerr << "train_and_search: " << error.what() << '\n';
    return 1;
  }
}
// [/program]
