// A training that a configuration of DeepSpeed describes: its batch sizes, optimizer, schedule of the
// learning rate, clipping, and stage of ZeRO. Two ranks fit a plane to points with LibTorch.
//
//   deepspeed [FILE.json] [--address HOST:PORT]
//
// FILE.json is a configuration to take in place of the one below. Without it the program prints:
//
//   each of 320 steps has 32 rows: on each of 2 ranks 2 times 8
//   the loss is 0.000
#include <iomanip>
#include <iostream>
#include <string>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <CLI/CLI.hpp>
#include <troupe/train/deepspeed.hpp>
#include <troupe/train/run.hpp>
#include <troupe/troupe.hpp>

namespace train = troupe::train;
namespace deepspeed = troupe::train::deepspeed;

namespace {

// [configuration]
constexpr const char* kConfiguration = R"({
  "train_batch_size": 32,
  "train_micro_batch_size_per_gpu": 8,
  "optimizer": {"type": "AdamW", "params": {"lr": 0.05}},
  "scheduler": {
    "type": "WarmupCosineLR",
    "params": {"warmup_num_steps": 20, "total_num_steps": 320}
  },
  "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 1}
})";
// [/configuration]

constexpr int kEpochs = 40;

/// Points of the plane z = 2 x - y + 0.5.
train::Dataset points() {
  torch::manual_seed(0);
  const auto places = torch::rand({256, 2});
  return {places, places.matmul(torch::tensor({{2.0F}, {-1.0F}})) + 0.5};
}

struct Trained {
  std::int64_t steps = 0;
  deepspeed::BatchSizes sizes;
  double loss = 0;
};

// [fit]
Trained fit(train::Context& ctx, const deepspeed::Config& config) {  // runs on every rank
  torch::nn::Linear model(2, 1);
  auto engine = deepspeed::initialize(ctx, model, config);
  torch::Tensor loss;
  for (int epoch : ctx.epochs(kEpochs)) {
    for (auto& batch : engine.loader(points(), epoch)) {
      loss = engine.forward([&] {
        return torch::nn::functional::mse_loss(model->forward(batch.data), batch.target);
      });
      engine.backward(loss);
      engine.step();
    }
    ctx.report({{"loss", loss.item<double>()}}, engine.checkpoint());
  }
  return {engine.global_steps(), engine.batch_sizes(), loss.item<double>()};
}
// [/fit]

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    std::string file;
    CLI::App app{"Trains as a configuration of DeepSpeed says."};
    app.add_option("--address", "the head, HOST:PORT; without it a private cluster");
    app.add_option("--token-file", "the cluster's secret");  // Both are read by troupe::init.
    app.add_option("file", file, "configuration; without it the one of this program");
    CLI11_PARSE(app, argc, argv);
    // [run]
    const auto config = file.empty() ? deepspeed::parse(kConfiguration) : deepspeed::read(file);
    auto result = train::run<fit>(config, {.workers = 2, .context = config.context()});
    // [/run]
    const auto& [steps, sizes, loss] = *result.value;
    std::cout << "each of " << steps << " steps has " << sizes.train << " rows: on each of 2 ranks "
              << sizes.accumulation << " times " << sizes.micro << "\nthe loss is " << std::fixed
              << std::setprecision(3) << loss << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "deepspeed: " << error.what() << '\n';
    return 1;
  }
}
