#include <troupe/train.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <torch/cuda.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include "arguments.hpp"
#include "train/gpt.hpp"
#include "train/gpus.hpp"

/// Training steps a second of two data-parallel processes of one machine, against the same two
/// processes that do not communicate (the floor). `./run bench train --peer` runs PyTorch's
/// DistributedDataParallel beside it.
///
///   ddp_bench [ranks] [--gpus N] [--json] [--smoke]
namespace {

using Clock = std::chrono::steady_clock;

struct Config {
  std::vector<std::int64_t> widths;  ///< of a network of linear layers; none: a GPT
  std::int64_t batch = 64;
  int steps = 100;
  int rounds = 3;
  bool shares_gpu = false;  ///< with other ranks
  troupe::bench::GptSize gpt = {};
};
struct Speed {
  double alone = 0;  ///< steps a second without communication
  double together = 0;
};

torch::nn::Sequential make_mlp(const Config& config) {
  torch::nn::Sequential net;
  for (std::size_t i = 0; i + 1 < config.widths.size(); ++i) {
    net->push_back(torch::nn::Linear(config.widths[i], config.widths[i + 1]));
    if (i + 2 < config.widths.size()) net->push_back(torch::nn::ReLU());
  }
  return net;
}

/// Steps a second of `net` under SGD; `loss` computes the loss of one batch, always the same.
template <class Net, class Loss>
double steps_per_second(troupe::train::Context& ctx, Net& net, const Loss& loss,
                        const Config& config) {
  torch::optim::SGD optim(net->parameters(), 0.05);
  auto step = [&] {
    optim.zero_grad();
    loss(net).backward();
    optim.step();
  };
  const auto await_gpu = [&] {
    if (ctx.device().is_cuda()) torch::cuda::synchronize();
  };
  double best = 0;
  for (int i = 0; i < 5; ++i) step();
  for (int round = 0; round < config.rounds; ++round) {
    await_gpu();
    ctx.communicator().barrier();
    const auto start = Clock::now();
    for (int i = 0; i < config.steps; ++i) step();
    await_gpu();
    best =
        std::max(best, config.steps / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

/// `make_net` returns a new model on the CPU.
template <class MakeNet, class Loss>
Speed compare(troupe::train::Context& ctx, const MakeNet& make_net, const Loss& loss,
              const Config& config) {
  Speed speed;
  {
    auto plain = make_net();
    plain->to(ctx.device());
    speed.alone = steps_per_second(ctx, plain, loss, config);
  }
  auto net = ctx.prepare(make_net());
  speed.together = steps_per_second(ctx, net, loss, config);
  return speed;
}

torch::Tensor random_classes(troupe::train::Context& ctx, std::int64_t classes,
                             std::vector<std::int64_t> shape) {
  return torch::randint(classes, shape, torch::dtype(torch::kInt64).device(ctx.device()));
}

Speed measure(troupe::train::Context& ctx, const Config& config) {
  if (config.shares_gpu) troupe::bench::share_gpu(ctx.rank());
  namespace functional = torch::nn::functional;
  if (!config.widths.empty()) {
    const auto x = torch::randn({config.batch, config.widths.front()}, ctx.device());
    const auto y = random_classes(ctx, config.widths.back(), {config.batch});
    const auto loss = [&](auto& net) { return functional::cross_entropy(net->forward(x), y); };
    return compare(
        ctx, [&] { return make_mlp(config); }, loss, config);
  }
  const auto& size = config.gpt;
  const auto x = random_classes(ctx, size.vocabulary, {config.batch, size.context});
  const auto y = random_classes(ctx, size.vocabulary, {config.batch * size.context});
  const auto loss = [&](auto& net) {
    const troupe::bench::Bfloat16Autocast bfloat16;
    return functional::cross_entropy(net->forward(x).view({-1, size.vocabulary}), y);
  };
  return compare(
      ctx, [&] { return troupe::bench::Gpt(size); }, loss, config);
}

struct Case {
  const char* name;
  Config config;
};

}  // namespace

int main(int argc, char** argv) {
  // A worker process runs main, too, up to the first use of a cluster.
  troupe::bench::Arguments arguments(
      "Training steps a second of data-parallel processes of this machine.");
  int ranks = 2, gpus = 0;
  bool json_only = false, smoke = false;
  arguments.option("ranks", ranks, "processes");
  arguments.option("--gpus", gpus, "GPUs that the ranks share; 0: the ranks are on the CPU");
  arguments.flag("--json", json_only, "JSON lines only");
  arguments.flag("--smoke", smoke,
                 "the smallest model, a few steps: shows that it runs, not how fast");
  arguments.parse(argc, argv);
  const Case on_cpu[] = {{"MLP 64-64-10 b32", {{64, 64, 10}, 32, 2000}},
                         {"MLP 784-1024-1024-10 b64", {{784, 1024, 1024, 10}, 64, 100}},
                         {"MLP 784-4096-4096-10 b64", {{784, 4096, 4096, 10}, 64, 10}}};
  const Case on_gpu[] = {{"MLP 64-64-10 b32", {{64, 64, 10}, 32, 200}},
                         {"MLP 784-4096-4096-10 b1024", {{784, 4096, 4096, 10}, 1024, 50}},
                         {"MLP 4096-8192-8192-10 b4096", {{4096, 8192, 8192, 10}, 4096, 10}},
                         {"GPT 124M bf16 b16x1024", {{}, 16, 10}}};
  const auto cluster = troupe::init({.cpus = static_cast<double>(ranks)});
  if (!json_only) {
    std::printf("data-parallel steps a second, %d ranks, %ld cores\n", ranks,
                ::sysconf(_SC_NPROCESSORS_ONLN));
  }
  for (auto [name, config] : gpus > 0 ? std::span<const Case>(on_gpu) : on_cpu) {
    config.shares_gpu = gpus > 0 && gpus < ranks;
    if (config.shares_gpu) config.steps = std::max(config.steps / 10, 3);  // ranks take turns
    if (smoke) config.steps = 5, config.rounds = 1;
    const auto result = troupe::train::run<measure>(
        config, {.workers = ranks, .each = troupe::bench::rank_options(ranks, gpus)});
    const auto [alone, together] = *result.value;
    if (!json_only) {
      std::printf("%-28s  %8.1f  floor %8.1f (%3.0f %%)\n", name, together, alone,
                  100 * together / alone);
    }
    std::printf(
        "{\"bench\":\"ddp\",\"ranks\":%d,\"model\":\"%s\",\"steps_per_s\":%.3f,\"floor\":%.3f",
        ranks, name, together, alone);
    if (config.widths.empty()) {
      const auto tokens = static_cast<double>(config.batch * config.gpt.context);
      std::printf(",\"tflops\":%.1f",
                  together * tokens * troupe::bench::flops_per_token(config.gpt) / 1e12);
    }
    std::printf("}\n");
    if (smoke) break;
  }
}
