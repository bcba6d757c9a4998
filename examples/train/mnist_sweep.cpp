// Searches for the learning rate, the momentum and the width of a net on MNIST: each trial is a gang
// of ranks that train together, and ASHA stops those that fall behind after an epoch or three, so
// that most of the time goes into the good ones. The driver reads the files, and all trials share
// one copy of the data on each machine.
//
//   mnist_sweep [--address HOST:PORT] [--data FOLDER] [--ranks N] [--trials N] [--storage FOLDER]
//
// FOLDER holds the four IDX files of MNIST, compressed or not; without it a small data set is made
// up. With --storage the run leaves its reports and a page for a browser there. How the trials go is
// shown on standard error. It ends with lines like these:
//
//   12 trials, of which 2 were trained for all 9 epochs
//   accuracy 0.97 with lr 0.12, momentum 0.71, hidden 128
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <CLI/CLI.hpp>
#include <troupe/train/context.hpp>
#include <troupe/train/tensor.hpp>
#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

#include "idx.hpp"

namespace train = troupe::train;
namespace tune = troupe::tune;

namespace {

constexpr int kEpochs = 9;

struct Config {
  troupe::Ref<train::Dataset> training = {};
  troupe::Ref<train::Dataset> test = {};
  double lr = 0.05;
  double momentum = 0.9;
  std::int64_t hidden = 128;
};

at::Tensor brightness(const at::Tensor& bytes) { return bytes.to(torch::kFloat) / 255; }

double accuracy(torch::nn::Sequential& model, const train::Dataset& rows, c10::Device device) {
  const torch::NoGradGuard no_gradients;
  const auto guess = model->forward(brightness(rows.data.to(device))).argmax(1).cpu();
  return guess.eq(rows.target).to(torch::kDouble).mean().item<double>();
}

/// What every rank of a trial runs.
void train_mnist(train::Context& ctx, const Config& config) {
  const auto training = config.training.get();
  const auto test = config.test.get();
  torch::manual_seed(0);
  auto model = ctx.prepare(torch::nn::Sequential(torch::nn::Linear(idx::kPixels, config.hidden),
                                                 torch::nn::ReLU(),
                                                 torch::nn::Linear(config.hidden, idx::kClasses)));
  auto optimizer = ctx.prepare(torch::optim::SGD(
      model->parameters(), torch::optim::SGDOptions(config.lr).momentum(config.momentum)));
  for (const int epoch : ctx.epochs(kEpochs)) {
    for (auto& batch : ctx.loader(training, 64 / ctx.world_size(), epoch)) {
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model->forward(brightness(batch.data)), batch.target)
          .backward();
      optimizer.step();
    }
    if (ctx.report({{"accuracy", accuracy(model, test, ctx.device())}}) == troupe::Verdict::Stop)
      return;
  }
}

void search(const std::string& folder, int ranks, int trials, const std::string& storage) {
  const auto training = folder.empty() ? idx::synthetic(2000, 1) : idx::read(folder, "train");
  const auto test = folder.empty() ? idx::synthetic(500, 2) : idx::read(folder, "t10k");
  const auto results = tune::run<train_mnist>(
      {.space = {{"lr", tune::loguniform(1e-3, 1.0)},
                 {"momentum", tune::uniform(0.0, 0.95)},
                 {"hidden", tune::ordinal({16, 32, 64, 128})}},
       .trials = static_cast<std::uint64_t>(trials),
       .metric = "accuracy",
       .mode = tune::Max,
       .scheduler = tune::asha({.max_t = kEpochs, .eta = 3}),
       .each = {.workers = ranks},
       .storage = storage,
       .seed = 1,
       .config = {.training = troupe::put(training), .test = troupe::put(test)}});
  const auto is_whole = [](const auto& result) { return result.trial.t == kEpochs; };
  const auto& [config, trial, text] = results.best();
  std::cout << results.trials().size() << " trials, of which "
            << std::ranges::count_if(results.trials(), is_whole) << " were trained for all "
            << kEpochs << " epochs\naccuracy " << *trial.best << " with lr " << config.lr
            << ", momentum " << config.momentum << ", hidden " << config.hidden << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    std::string folder, storage;
    int ranks = 2, trials = 12;
    CLI::App app{"Searches for the hyperparameters of a small net on MNIST."};
    app.add_option("--address", "the head, HOST:PORT; without it a private cluster");
    app.add_option("--token-file", "the cluster's secret");  // Both are read by troupe::init.
    app.add_option("--data", folder, "where the IDX files are; without it the data is made up");
    app.add_option("--ranks", ranks, "of each trial")->check(CLI::Range(1, 64));
    app.add_option("--trials", trials, "to begin")->check(CLI::Range(1, 100'000));
    app.add_option("--storage", storage, "where the run leaves its files; without it nowhere");
    CLI11_PARSE(app, argc, argv);
    search(folder, ranks, trials, storage);
  } catch (const std::exception& error) {
    std::cerr << "mnist_sweep: " << error.what() << '\n';
    return 1;
  }
}
