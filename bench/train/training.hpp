#pragma once

#include <troupe/train.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/utils.h>

#include "arguments.hpp"
#include "train/gpt.hpp"

/// What the benchmarks of training steps have in common: their command line, the models, the loss
/// and the clock. `peer/torch_train.py` has the same models in Python.
namespace troupe::bench {

/// One model, and how its steps are timed. It travels from the driver to the ranks.
struct Training {
  std::vector<std::int64_t> widths;  ///< of a network of linear layers; none: a GPT
  std::int64_t batch = 64;           ///< rows, or sequences of a GPT
  int steps = 100;                   ///< of one round
  int rounds = 3;                    ///< of which the best counts
  bool shares_gpu = false;           ///< with other ranks
  GptSize gpt = {};
};
struct TrainingCase {
  std::string name;
  Training training;
};

struct TrainingArguments {
  int ranks = 2;
  int gpus = 0;  ///< that the ranks share; 0: the ranks are on the CPU
  bool json_only = false;
  bool smoke = false;
};
/// What a benchmark's main works with.
struct TrainingBench {
  TrainingArguments arguments;
  Cluster cluster;  ///< that TROUPE_ADDRESS names, else a private one with a CPU for each rank
};
/// Reads the command line, joins or starts the cluster, and prints the title of the results, unless
/// the title is empty or the results are JSON lines only. `add_arguments` may add the benchmark's
/// own, which have their values when this returns. Ends the process with a text where an argument
/// is wrong, or help is asked for. Call it first in main: a worker process runs main, too, up to
/// here.
TrainingBench begin_training_bench(const std::string& purpose, const std::string& title, int argc,
                                   char** argv,
                                   const std::function<void(Arguments&)>& add_arguments = {});

/// The smallest model first, and with `smoke` alone and with few steps.
std::vector<TrainingCase> cases_of(const TrainingArguments& arguments);

/// CUDA's name of the GPU on which the rank trains, "" on a CPU.
std::string gpu_name(const train::Context& ctx);

/// A network of linear layers with ReLU between them, on the CPU.
torch::nn::Sequential make_mlp(const std::vector<std::int64_t>& widths);

/// Integers from 0 to `classes` - 1, on the device of the context.
torch::Tensor random_classes(train::Context& ctx, std::int64_t classes,
                             std::vector<std::int64_t> shape);

/// Steps a second of the best round. `step` has run five times before the clock starts. A
/// collective: the ranks begin each round together.
double steps_per_second(train::Context& ctx, const Training& training,
                        const std::function<void()>& step);

/// Returns what `measure(make_net, loss)` does: `make_net()` returns a new model on the CPU, and
/// `loss(net)` is the loss of one batch, always the same.
template <class Measure>
auto with_model(train::Context& ctx, const Training& training, const Measure& measure) {
  namespace functional = torch::nn::functional;
  if (!training.widths.empty()) {
    const auto x = torch::randn({training.batch, training.widths.front()}, ctx.device());
    const auto y = random_classes(ctx, training.widths.back(), {training.batch});
    return measure([&] { return make_mlp(training.widths); },
                   [&](auto& net) { return functional::cross_entropy(net->forward(x), y); });
  }
  const auto& size = training.gpt;
  const auto x = random_classes(ctx, size.vocabulary, {training.batch, size.context});
  const auto y = random_classes(ctx, size.vocabulary, {training.batch * size.context});
  return measure([&] { return Gpt(size); },
                 [&](auto& net) {
                   const Bfloat16Autocast bfloat16;
                   return functional::cross_entropy(net->forward(x).view({-1, size.vocabulary}), y);
                 });
}

}  // namespace troupe::bench
