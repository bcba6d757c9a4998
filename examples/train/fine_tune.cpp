// Fine-tuning from a file of safetensors. A net learns to read the digits 0 to 7 of the UCI digits,
// and rank 0 writes it to a file. Then a net for all ten digits, of which there are few rows, takes
// all layers but the last one from that file, and learns better than the same net from scratch.
//
//   fine_tune [--address HOST:PORT] [--data FILE] [--file FILE.safetensors] [--ranks N]
//             [--gpus N] [--zero 0|1|2|3] [--epochs N]
//
// Without --file the file is in a temporary folder, which is removed at the end. Rank 0 writes and
// reads it: on a cluster of several machines name a file in a folder that they share. --epochs says
// how long the nets for ten digits train, --gpus is of each rank, and --zero is the stage of ZeRO:
// what the ranks cut among them. With the data in examples/data it prints:
//
//   958 rows of the digits 0 to 7: 96 % of the held-out rows are read right
//   30 rows of all ten digits, from scratch: 57 %
//   30 rows of all ten digits, with the body from the file: 83 %
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <CLI/CLI.hpp>
#include <troupe/train/context.hpp>
#include <troupe/train/run.hpp>
#include <troupe/train/safetensors.hpp>
#include <troupe/train/tensor.hpp>
#include <troupe/troupe.hpp>

#include "../digits.hpp"
#include "temporary_folder.hpp"

namespace fs = std::filesystem;
namespace train = troupe::train;
namespace safetensors = troupe::train::safetensors;

namespace {

constexpr std::int64_t kFewerDigits = 8;  // 0 to 7
constexpr std::int64_t kDigits = 10;
constexpr int kEpochsOfFewer = 10;
constexpr std::int64_t kRowsOfEach = 3;  // of each of the ten digits

struct Config {
  troupe::Ref<train::Dataset> training;
  troupe::Ref<train::Dataset> held_out;
  std::string file;  // empty: none
  int epochs = 0;
  std::int64_t batch = 0;  // of all ranks together
};

/// A body, which makes features of pixels, and a head, which makes guesses of features.
torch::nn::Sequential net(std::int64_t digits) {
  torch::manual_seed(0);
  using torch::nn::Linear;
  using torch::nn::ReLU;
  return torch::nn::Sequential({{"body1", Linear(64, 48)},
                                {"relu1", ReLU()},
                                {"body2", Linear(48, 24)},
                                {"relu2", ReLU()},
                                {"head", Linear(24, digits)}});
}

/// -> the accuracy on the held-out rows.
double learn(train::Context& ctx, torch::nn::Sequential& model, const Config& config) {
  const auto training = config.training.get();
  const auto batch_of_rank = std::max<std::int64_t>(config.batch / ctx.world_size(), 1);
  auto optimizer =
      ctx.prepare(torch::optim::Adam(model->parameters(), torch::optim::AdamOptions(0.01)));
  for (const int epoch : ctx.epochs(config.epochs)) {
    for (auto& batch : ctx.loader(training, batch_of_rank, epoch)) {
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target).backward();
      optimizer.step();
    }
  }
  return digits::accuracy(model, config.held_out.get(), ctx.device());
}

// [save]
double learn_fewer(train::Context& ctx, const Config& config) {  // runs on every rank
  auto model = ctx.prepare(net(kFewerDigits));
  const double accuracy = learn(ctx, model, config);
  const auto whole = ctx.gathered(model);  // for stage 3 of ZeRO; on every rank
  if (ctx.rank() == 0) safetensors::save(model, config.file);
  return accuracy;
}
// [/save]

// [load]
std::string all_but_the_head(const std::string& name) {
  return name.starts_with("head.") ? "" : name;
}

double learn_all(train::Context& ctx, const Config& config) {  // runs on every rank
  auto model = net(kDigits);
  if (ctx.rank() == 0 && !config.file.empty())
    safetensors::load(model, config.file, {.name_in_file = all_but_the_head});
  model = ctx.prepare(model);  // gives all ranks the values of rank 0
  return learn(ctx, model, config);
}
// [/load]

train::Dataset rows_at(const train::Dataset& rows, const at::Tensor& places) {
  return {rows.data.index_select(0, places), rows.target.index_select(0, places)};
}

train::Dataset with_fewer_digits(const train::Dataset& rows) {
  return rows_at(rows, rows.target.lt(kFewerDigits).nonzero().squeeze(1));
}

train::Dataset few_of_each_digit(const train::Dataset& rows) {
  std::vector<at::Tensor> places;
  for (std::int64_t digit = 0; digit < kDigits; ++digit)
    places.push_back(rows.target.eq(digit).nonzero().squeeze(1).slice(0, 0, kRowsOfEach));
  return rows_at(rows, at::cat(places));
}

std::string percent(double part) { return std::to_string(std::lround(100 * part)) + " %"; }

void run(const digits::Parts& data, const std::string& file, const train::RunOptions& options,
         int epochs) {
  const auto fewer = with_fewer_digits(data.training);
  const auto few = few_of_each_digit(data.training);
  const auto first = train::run<learn_fewer>(
      {troupe::put(fewer), troupe::put(with_fewer_digits(data.held_out)), file, kEpochsOfFewer, 32},
      options);
  std::cout << fewer.data.size(0) << " rows of the digits 0 to 7: " << percent(*first.value)
            << " of the held-out rows are read right\n";

  Config config{troupe::put(few), troupe::put(data.held_out), "", epochs, 10};
  const auto scratch = train::run<learn_all>(config, options);
  config.file = file;
  const auto tuned = train::run<learn_all>(config, options);
  const auto of_all = std::to_string(few.data.size(0)) + " rows of all ten digits, ";
  std::cout << of_all << "from scratch: " << percent(*scratch.value) << '\n'
            << of_all << "with the body from the file: " << percent(*tuned.value) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    std::string data = "examples/data/digits/digits.csv.gz";
    std::string file;
    int ranks = 2;
    double gpus = 0;
    int zero = 0;
    int epochs = 8;
    CLI::App app{"Fine-tunes a net from a file of safetensors, on the UCI digits."};
    app.add_option("--address", "the head, HOST:PORT; without it a private cluster");
    app.add_option("--token-file", "the cluster's secret");  // Both are read by troupe::init.
    app.add_option("--data", data, "digits.csv.gz")->capture_default_str();
    app.add_option("--file", file, "of the net for fewer digits; without it a temporary one");
    app.add_option("--ranks", ranks, "that train together")->check(CLI::Range(1, 8));
    app.add_option("--gpus", gpus, "of each rank")->check(CLI::Range(0, 1));
    app.add_option("--zero", zero, "stage of ZeRO")->check(CLI::Range(0, 3));
    app.add_option("--epochs", epochs, "for all ten digits")->check(CLI::Range(1, 1000));
    CLI11_PARSE(app, argc, argv);
    const examples::TemporaryFolder folder;
    const auto path = file.empty() ? folder.path() / "body.safetensors" : fs::absolute(file);
    run(digits::load(data), path,
        {.workers = ranks, .each = {.gpus = gpus}, .context = {.zero = {.stage = zero}}}, epochs);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "fine_tune: " << error.what() << '\n';
    return 1;
  }
}
