// An ASHA search over data-parallel training runs: every trial is a gang of two processes that
// train a small net on the UCI digits with LibTorch. The best configuration is then trained once
// more by itself, and judged on rows that nothing has seen.
//
//   digits_sweep [--address HOST:PORT] [--data FILE] [--trials N] [--storage DIRECTORY]
//
// How the trials go is shown on standard error. Which of them ASHA stops depends on which report
// first, so that another run may end with another best trial. It prints, for instance:
//
//   best: trial 27: accuracy 0.9866 at t=17 with lr=0.2817, momentum=0.6278, noise=0.3113, ...
//   trained once more by itself: accuracy 0.973244 on the held-out rows
//   in all 14.6657 s
#include <chrono>
#include <filesystem>
#include <iostream>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <CLI/CLI.hpp>
#include <troupe/train/context.hpp>
#include <troupe/train/run.hpp>
#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

#include "digits.hpp"

namespace train = troupe::train;
namespace tune = troupe::tune;

namespace {

constexpr double kGoodEnough = 0.96;
constexpr int kRanks = 2;
constexpr int kEpochs = 27;

struct Config {
  double lr = 0.1;
  double momentum = 0.9;
  double noise = 0;  // standard deviation of what is added to the pixels in training
  std::int64_t hidden = 64;
  std::int64_t batch = 32;  // of each rank
  int epochs = kEpochs;
  std::string data;
};

at::Tensor with_noise(const at::Tensor& pixels, double deviation) {
  return pixels + deviation * torch::randn_like(pixels);
}

/// One rank of one training run. The same function runs under tune::run and train::run. -> accuracy
/// on the held-out rows.
double train_digits(train::Context& ctx, const Config& config) {
  const auto rows = digits::load(config.data);
  torch::manual_seed(0);
  auto model =
      ctx.prepare(torch::nn::Sequential(torch::nn::Linear(64, config.hidden), torch::nn::ReLU(),
                                        torch::nn::Linear(config.hidden, 10)));
  auto optimizer = ctx.prepare(torch::optim::SGD(
      model->parameters(), torch::optim::SGDOptions(config.lr).momentum(config.momentum)));
  for (const int epoch : ctx.epochs(config.epochs)) {
    // The step size falls to nothing, in a line.
    const double left = 1.0 - static_cast<double>(epoch) / config.epochs;
    static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options())
        .lr(config.lr * left);
    for (auto& batch : ctx.loader(rows.training, config.batch, epoch)) {
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model->forward(with_noise(batch.data, config.noise)),
                                           batch.target)
          .backward();
      optimizer.step();
    }
    ctx.report({{"accuracy", digits::accuracy(model, rows.validation, ctx.device())}},
               ctx.checkpoint(model, optimizer));
  }
  return digits::accuracy(model, rows.held_out, ctx.device());
}

int sweep(const std::string& data, std::uint64_t trials, const std::string& storage) {
  const auto start = std::chrono::steady_clock::now();
  if (!std::filesystem::exists(data))
    throw std::runtime_error("there is no " + data + "; name the file with --data");
  // [sweep]
  const auto results =
      tune::run<train_digits>({.space = {{"lr", tune::loguniform(1e-3, 0.5)},
                                         {"momentum", tune::uniform(0.0, 0.95)},
                                         {"noise", tune::uniform(0.0, 0.4)},
                                         {"hidden", tune::choice({32, 64, 128, 256})},
                                         {"batch", tune::choice({8, 16, 32, 64})}},
                               .trials = trials,
                               .metric = "accuracy",
                               .mode = tune::Max,
                               .scheduler = tune::asha({.max_t = kEpochs, .eta = 3}),
                               .each = {.workers = kRanks},
                               .storage = storage,
                               .seed = 7,
                               .config = {.data = data}});
  // [/sweep]
  if (const int code = results.exit_code()) return code;  // the summary says why
  const auto& best = results.best();
  const auto again = train::run<train_digits>(best.config, {.workers = kRanks});
  const double held_out = again.value.value_or(0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << "best: " << best << '\n'
            << "trained once more by itself: accuracy " << held_out << " on the held-out rows\n"
            << "in all " << took.count() << " s\n";
  if (held_out >= kGoodEnough) return 0;
  std::cerr << "digits_sweep: the held-out accuracy is below " << kGoodEnough << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    std::string data = "examples/data/digits/digits.csv.gz";
    std::string storage;
    int trials = 30;
    CLI::App app{"An ASHA search over data-parallel training runs on the UCI digits."};
    // troupe::init reads these two.
    app.add_option("--address", "the head, HOST:PORT; without it a private cluster");
    app.add_option("--token-file", "the cluster's secret");
    app.add_option("--data", data, "digits.csv.gz, at the same path on every node")
        ->capture_default_str();
    app.add_option("--trials", trials, "configurations to try")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str();
    app.add_option("--storage", storage, "where results and checkpoints go");
    CLI11_PARSE(app, argc, argv);
    return sweep(std::filesystem::absolute(data), static_cast<std::uint64_t>(trials), storage);
  } catch (const std::exception& error) {
    std::cerr << "digits_sweep: " << error.what() << '\n';
    return 1;
  }
}
