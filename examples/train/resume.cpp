// A training that continues from its last checkpoint, whatever ended the run before. Each epoch
// leaves a checkpoint, which is written while the next epoch trains.
//
//   resume [--storage FOLDER] [--address HOST:PORT] [--data FILE] [--ranks N] [--gpus N]
//          [--zero 0|1|2|3] [--epochs N] [--stop-after N]
//
// Without --storage the checkpoints are in a temporary folder, in which a first run stops after
// half of the epochs and a second one continues. With it there is one run, which you may end with
// Ctrl-C, or on a machine that loses its power, and start again, also with other --ranks and
// another --zero. The three best checkpoints and the last one stay. --gpus is of each rank. With
// the data in examples/data it prints:
//
//   epochs 1 to 5, from the beginning
//   epochs 6 to 10, from checkpoint_000004
//   94 % of the held-out rows are read right
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <CLI/CLI.hpp>
#include <troupe/train/context.hpp>
#include <troupe/train/run.hpp>
#include <troupe/train/tensor.hpp>
#include <troupe/troupe.hpp>

#include "../digits.hpp"
#include "temporary_folder.hpp"

namespace fs = std::filesystem;
namespace train = troupe::train;

namespace {

struct Config {
  troupe::Ref<train::Dataset> training;
  troupe::Ref<train::Dataset> validation;
  int epochs = 10;
  int stop_after = 0;  // so many epochs of this run; 0: it goes to the end
};

torch::nn::Sequential net() {
  torch::manual_seed(0);
  using torch::nn::Linear;
  return torch::nn::Sequential(Linear(64, 32), torch::nn::ReLU(), Linear(32, 10));
}

template <class Optimizer>
void train_one(torch::nn::Sequential& model, Optimizer& optimizer, train::Loader loader) {
  for (auto& batch : loader) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target).backward();
    optimizer.step();
  }
}

// [fit]
double fit(train::Context& ctx, const Config& config) {  // runs on every rank
  const auto training = config.training.get();
  const auto validation = config.validation.get();
  auto model = ctx.prepare(net());
  auto optimizer = ctx.prepare(torch::optim::Adam(model->parameters(), 0.01));
  train::CheckpointSave saving;  // of the epoch before
  double accuracy = 0;
  int trained = 0;
  for (const int epoch : ctx.epochs(config.epochs)) {
    train_one(model, optimizer, ctx.loader(training, 16, epoch));
    const auto checkpoint = saving.wait();
    if (trained > 0 && ctx.report({{"accuracy", accuracy}}, checkpoint) == troupe::Verdict::Stop)
      return accuracy;
    accuracy = digits::accuracy(model, validation, ctx.device());
    saving = ctx.begin_checkpoint(model, optimizer);
    if (++trained == config.stop_after) break;
  }
  if (trained > 0) ctx.report({{"accuracy", accuracy}}, saving.wait());
  return accuracy;
}

/// -> the epochs that it trained.
std::size_t run(const Config& config, const fs::path& storage, train::RunOptions options) {
  options.storage = storage;
  options.restore_from = train::latest_checkpoint(storage);  // empty: begin at the start
  options.context.checkpoints = {
      .keep_best = 3, .metric = "accuracy", .best = train::CheckpointOptions::Best::Highest};
  return train::run<fit>(config, options).history.size();
}
// [/fit]

void run_and_tell(const Config& config, const fs::path& storage, const train::RunOptions& options) {
  const auto from = train::latest_checkpoint(storage);
  const auto epochs = run(config, storage, options);
  const auto last = train::latest_checkpoint(storage).filename().string();
  if (last.empty()) throw std::runtime_error("no checkpoint was written to " + storage.string());
  // The name of a checkpoint counts epochs from 0, while people and the logs count them from 1.
  const auto end = std::stoi(last.substr(last.find('_') + 1)) + 1;
  if (epochs == 0) {
    std::cout << "all epochs were trained before\n";
    return;
  }
  std::cout << "epochs " << end - static_cast<int>(epochs) + 1 << " to " << end << ", from "
            << (from.empty() ? "the beginning" : from.filename().string()) << '\n';
}

void tell_result(const fs::path& storage, const train::Dataset& held_out) {
  auto model = net();
  train::load(model, train::latest_checkpoint(storage));
  std::cout << std::lround(100 * digits::accuracy(model, held_out, torch::kCPU))
            << " % of the held-out rows are read right\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    std::string data = "examples/data/digits/digits.csv.gz";
    std::string storage;
    int ranks = 2;
    double gpus = 0;
    int zero = 0;
    int epochs = 10;
    int stop_after = 0;
    CLI::App app{"Trains a net on the UCI digits, and continues from the last checkpoint."};
    app.add_option("--address", "the head, HOST:PORT; without it a private cluster");
    app.add_option("--token-file", "the cluster's secret");  // Both are read by troupe::init.
    app.add_option("--data", data, "digits.csv.gz")->capture_default_str();
    app.add_option("--storage", storage, "of the checkpoints; without it a temporary one");
    app.add_option("--ranks", ranks, "that train together")->check(CLI::Range(1, 8));
    app.add_option("--gpus", gpus, "of each rank")->check(CLI::Range(0, 1));
    app.add_option("--zero", zero, "stage of ZeRO")->check(CLI::Range(0, 3));
    app.add_option("--epochs", epochs, "of all runs together")->check(CLI::Range(1, 1000));
    app.add_option("--stop-after", stop_after, "epochs of this run")->check(CLI::Range(1, 1000));
    CLI11_PARSE(app, argc, argv);
    const auto parts = digits::load(data);
    Config config{troupe::put(parts.training), troupe::put(parts.validation), epochs, stop_after};
    const train::RunOptions options{
        .workers = ranks, .each = {.gpus = gpus}, .context = {.zero = {.stage = zero}}};
    const examples::TemporaryFolder folder;
    const auto path = storage.empty() ? folder.path() : fs::absolute(storage);
    if (storage.empty()) {
      config.stop_after = (epochs + 1) / 2;
      run_and_tell(config, path, options);
      config.stop_after = 0;
    }
    run_and_tell(config, path, options);
    tell_result(path, parts.held_out);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "resume: " << error.what() << '\n';
    return 1;
  }
}
