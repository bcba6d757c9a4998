// Population-based training: eight gangs of two processes train a small net on the UCI digits with
// LibTorch, and every other epoch the worst members go on from a better member's weights with a
// changed learning rate, so that the population finds a schedule. As many random configurations are
// trained for as long, to compare.
//
//   pbt_digits [--address HOST:PORT] [--data FILE] [--members N] [--storage DIRECTORY]
//
// How the trials go is shown on standard error. Whom a member takes over depends on who reports
// first, so that another run may find another schedule. It prints, for instance:
//
//   the schedule that the population found:
//     from the start: lr=0.982, momentum=0.5159, noise=0.2015, batch=32 (trial 7)
//     after t=4: lr=0.07398, momentum=0.4127, noise=0.2419, batch=32 (trial 1)
//     after t=8: lr=0.05918, momentum=0.5558, noise=0.1935, batch=32 (trial 5)
//   population-based training: accuracy 0.979933, 0.966555 on the held-out rows
//   the best of as many random trials of the same length: accuracy 0.976589, 0.956522 on the ...
#include <filesystem>
#include <iostream>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <CLI/CLI.hpp>
#include <troupe/train/context.hpp>
#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

#include "digits.hpp"

namespace train = troupe::train;
namespace tune = troupe::tune;

namespace {

constexpr int kRanks = 2;
constexpr int kEpochs = 16;
constexpr int kInterval = 2;

struct Config {
  double lr = 0.01;
  double momentum = 0.5;
  double noise = 0;         // standard deviation of what is added to the pixels in training
  std::int64_t batch = 32;  // of each rank
  std::string data;
};

/// One rank of one member. Nothing in it knows of populations: it goes on from the checkpoint that
/// it is given.
void train_digits(train::Context& ctx, const Config& config) {
  const auto rows = digits::load(config.data);
  torch::manual_seed(0);
  auto model = ctx.prepare(torch::nn::Sequential(torch::nn::Linear(64, 64), torch::nn::ReLU(),
                                                 torch::nn::Linear(64, 10)));
  auto optimizer = ctx.prepare(torch::optim::SGD(
      model->parameters(), torch::optim::SGDOptions(config.lr).momentum(config.momentum)));
  for (const int epoch : ctx.epochs(kEpochs)) {
    for (auto& batch : ctx.loader(rows.training, config.batch, epoch)) {
      optimizer.zero_grad();
      const auto pixels = batch.data + config.noise * torch::randn_like(batch.data);
      torch::nn::functional::cross_entropy(model->forward(pixels), batch.target).backward();
      optimizer.step();
    }
    ctx.report({{"accuracy", digits::accuracy(model, rows.validation, ctx.device())},
                {"held_out", digits::accuracy(model, rows.held_out, ctx.device())}},
               ctx.checkpoint(model, optimizer));
  }
}

// [search]
tune::Results<Config> search(const std::string& data, std::uint64_t trials,
                             const std::string& storage, tune::SchedulerFactory scheduler) {
  return tune::run<train_digits>({.space = {{"lr", tune::loguniform(1e-4, 1.0)},
                                            {"momentum", tune::uniform(0.0, 0.95)},
                                            {"noise", tune::uniform(0.0, 0.4)},
                                            {"batch", tune::choice({16, 32, 64})}},
                                  .trials = trials,
                                  .metric = "accuracy",
                                  .mode = tune::Max,
                                  .scheduler = std::move(scheduler),
                                  .each = {.workers = kRanks},
                                  .storage = storage,
                                  .seed = 4,
                                  .config = {.data = data}});
}
// [/search]

/// What the best trial reported last.
std::string accuracies(const tune::Results<Config>& results) {
  const auto& last = results.best().trial.last;
  return "accuracy " + std::to_string(last.front().value) + ", " +
         std::to_string(last.back().value) + " on the held-out rows";
}

int compare(const std::string& data, std::uint64_t members, const std::string& storage) {
  if (!std::filesystem::exists(data))
    throw std::runtime_error("there is no " + data + "; name the file with --data");
  // [population]
  const auto population = search(data, members, storage + "/pbt",
                                 tune::pbt({.interval = kInterval,
                                            .mutate = {{"lr", tune::loguniform(1e-4, 1.0)},
                                                       {"momentum", tune::uniform(0.0, 0.95)},
                                                       {"noise", tune::uniform(0.0, 0.4)}}}));
  // [/population]
  const auto random = search(data, members, storage + "/random", tune::fifo());
  std::cout << "the schedule that the population found:\n";
  // [schedule]
  for (const auto& segment : population.schedule()) std::cout << "  " << describe(segment) << '\n';
  // [/schedule]
  std::cout << "population-based training: " << accuracies(population) << '\n'
            << "the best of as many random trials of the same length: " << accuracies(random)
            << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    std::string data = "examples/data/digits/digits.csv.gz";
    std::string storage = "results";
    int members = 8;
    CLI::App app{"Population-based training of data-parallel gangs on the UCI digits."};
    // Read by troupe::init.
    app.add_option("--address", "the head, HOST:PORT; without it a private cluster");
    // Read by troupe::init.
    app.add_option("--token-file", "the cluster's secret");
    app.add_option("--data", data, "digits.csv.gz, at the same path on every node")
        ->capture_default_str();
    app.add_option("--members", members, "of the population")
        ->check(CLI::Range(2, 1000))
        ->capture_default_str();
    app.add_option("--storage", storage, "where results and checkpoints go")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return compare(std::filesystem::absolute(data), static_cast<std::uint64_t>(members),
                   std::filesystem::absolute(storage));
  } catch (const std::exception& error) {
    std::cerr << "pbt_digits: " << error.what() << '\n';
    return 1;
  }
}
