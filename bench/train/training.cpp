#include "train/training.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>

#include <cuda_runtime_api.h>
#include <torch/cuda.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

namespace troupe::bench {
namespace {

TrainingArguments parse_training_arguments(const std::string& purpose, int argc, char** argv,
                                           const std::function<void(Arguments&)>& add_arguments) {
  TrainingArguments given;
  Arguments arguments(purpose);
  arguments.option("ranks", given.ranks, "processes");
  arguments.option("--gpus", given.gpus, "GPUs that the ranks share; 0: the ranks are on the CPU");
  arguments.flag("--json", given.json_only, "JSON lines only");
  arguments.flag("--smoke", given.smoke,
                 "the smallest sizes and models, a few steps: shows that it runs, not how fast");
  if (add_arguments) add_arguments(arguments);
  arguments.parse(argc, argv);
  return given;
}

}  // namespace

TrainingBench begin_training_bench(const std::string& purpose, const std::string& title, int argc,
                                   char** argv,
                                   const std::function<void(Arguments&)>& add_arguments) {
  const auto arguments = parse_training_arguments(purpose, argc, argv, add_arguments);
  TrainingBench begun{arguments, init({.cpus = static_cast<double>(arguments.ranks)})};
  if (!title.empty() && !arguments.json_only) {
    std::printf("%s, %d ranks, %ld cores\n", title.c_str(), arguments.ranks,
                ::sysconf(_SC_NPROCESSORS_ONLN));
  }
  return begun;
}

std::vector<TrainingCase> cases_of(const TrainingArguments& arguments) {
  const std::vector<TrainingCase> on_cpu = {
      {"MLP 64-64-10 b32", {{64, 64, 10}, 32, 2000}},
      {"MLP 784-1024-1024-10 b64", {{784, 1024, 1024, 10}, 64, 100}},
      {"MLP 784-4096-4096-10 b64", {{784, 4096, 4096, 10}, 64, 10}}};
  const std::vector<TrainingCase> on_gpu = {
      {"MLP 64-64-10 b32", {{64, 64, 10}, 32, 200}},
      {"MLP 784-4096-4096-10 b1024", {{784, 4096, 4096, 10}, 1024, 50}},
      {"MLP 4096-8192-8192-10 b4096", {{4096, 8192, 8192, 10}, 4096, 10}},
      {"GPT 124M bf16 b16x1024", {{}, 16, 10}}};
  auto cases = arguments.gpus > 0 ? on_gpu : on_cpu;
  if (arguments.smoke) cases.resize(1);
  for (auto& [name, training] : cases) {
    training.shares_gpu = arguments.gpus > 0 && arguments.gpus < arguments.ranks;
    // Ranks that share a GPU take turns on it.
    if (training.shares_gpu) training.steps = std::max(training.steps / 10, 3);
    if (arguments.smoke) training.steps = 5, training.rounds = 1;
  }
  return cases;
}

std::string gpu_name(const train::Context& ctx) {
  if (!ctx.device().is_cuda()) return {};
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, ctx.device().index()) != cudaSuccess) return {};
  return properties.name;
}

torch::nn::Sequential make_mlp(const std::vector<std::int64_t>& widths) {
  torch::nn::Sequential net;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    net->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
    if (i + 2 < widths.size()) net->push_back(torch::nn::ReLU());
  }
  return net;
}

torch::Tensor random_classes(train::Context& ctx, std::int64_t classes,
                             std::vector<std::int64_t> shape) {
  return torch::randint(classes, shape, torch::dtype(torch::kInt64).device(ctx.device()));
}

double steps_per_second(train::Context& ctx, const Training& training,
                        const std::function<void()>& step) {
  using Clock = std::chrono::steady_clock;
  const auto await_gpu = [&] {
    if (ctx.device().is_cuda()) torch::cuda::synchronize();
  };
  double best = 0;
  for (int i = 0; i < 5; ++i) step();
  for (int round = 0; round < training.rounds; ++round) {
    await_gpu();
    ctx.communicator().barrier();
    const auto start = Clock::now();
    for (int i = 0; i < training.steps; ++i) step();
    await_gpu();
    const std::chrono::duration<double> seconds = Clock::now() - start;
    best = std::max(best, training.steps / seconds.count());
  }
  return best;
}

}  // namespace troupe::bench
