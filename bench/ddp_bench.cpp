#include <troupe/train.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <unistd.h>

#include "arguments.hpp"

/// Training steps a second of two data-parallel processes of one machine, against the same two
/// processes that do not communicate (the floor). The peer's figures are those of PyTorch's
/// DistributedDataParallel over gloo, measured on a machine of two cores; run the peer beside this
/// for a ratio that holds on another one.
///
///   ddp_bench [ranks] [--json] [--smoke]
namespace {

using Clock = std::chrono::steady_clock;

struct Config {
  std::vector<std::int64_t> widths;
  std::int64_t batch = 64;
  int steps = 100;
  int rounds = 3;
};
struct Speed {
  double alone = 0;  ///< steps a second without communication
  double together = 0;
};

torch::nn::Sequential make_net(const Config& config) {
  torch::nn::Sequential net;
  for (std::size_t i = 0; i + 1 < config.widths.size(); ++i) {
    net->push_back(torch::nn::Linear(config.widths[i], config.widths[i + 1]));
    if (i + 2 < config.widths.size()) net->push_back(torch::nn::ReLU());
  }
  return net;
}

double steps_per_second(troupe::train::Context& ctx, torch::nn::Sequential& net,
                        const Config& config) {
  torch::optim::SGD optim(net->parameters(), 0.05);
  const auto x = torch::randn({config.batch, config.widths.front()});
  const auto y = torch::randint(config.widths.back(), {config.batch});
  auto step = [&] {
    optim.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(x), y).backward();
    optim.step();
  };
  double best = 0;
  for (int i = 0; i < 5; ++i) step();
  for (int round = 0; round < config.rounds; ++round) {
    ctx.communicator().barrier();
    const auto start = Clock::now();
    for (int i = 0; i < config.steps; ++i) step();
    best =
        std::max(best, config.steps / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

Speed measure(troupe::train::Context& ctx, const Config& config) {
  auto plain = make_net(config);
  Speed speed;
  speed.alone = steps_per_second(ctx, plain, config);
  auto net = ctx.prepare(make_net(config));
  speed.together = steps_per_second(ctx, net, config);
  return speed;
}

struct Case {
  const char* name;
  Config config;
  double peer;  ///< steps a second
};

}  // namespace

int main(int argc, char** argv) {
  // A worker process runs main, too, up to the first use of a cluster.
  troupe::bench::Arguments arguments(
      "Training steps a second of data-parallel processes of this machine.");
  int ranks = 2;
  bool json_only = false, smoke = false;
  arguments.option("ranks", ranks, "processes");
  arguments.flag("--json", json_only, "JSON lines only");
  arguments.flag("--smoke", smoke,
                 "the smallest model, a few steps: shows that it runs, not how fast");
  arguments.parse(argc, argv);
  const Case cases[] = {{"MLP 64-64-10 b32", {{64, 64, 10}, 32, 2000}, 561},
                        {"MLP 784-1024-1024-10 b64", {{784, 1024, 1024, 10}, 64, 100}, 46.7},
                        {"MLP 784-4096-4096-10 b64", {{784, 4096, 4096, 10}, 64, 10}, 4.9}};
  const auto cluster = troupe::init({.cpus = static_cast<double>(ranks)});
  if (!json_only) {
    std::printf("data-parallel steps a second, %d ranks, %ld cores\n", ranks,
                ::sysconf(_SC_NPROCESSORS_ONLN));
  }
  for (auto [name, config, peer] : cases) {
    if (smoke) config.steps = 5, config.rounds = 1;
    const auto result = troupe::train::run<measure>(config, {.workers = ranks});
    const auto [alone, together] = *result.value;
    if (!json_only) {
      std::printf("%-26s  %8.1f  floor %8.1f (%3.0f %%)  torch DDP over gloo %6.1f (%.1fx)\n", name,
                  together, alone, 100 * together / alone, peer, together / peer);
    }
    std::printf(
        "{\"bench\":\"ddp\",\"ranks\":%d,\"model\":\"%s\",\"steps_per_s\":%.2f,\"floor\":%.2f,"
        "\"peer\":%.2f}\n",
        ranks, name, together, alone, peer);
    if (smoke) break;
  }
}
