#include <troupe/train.hpp>

#include <cstdio>

#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "train/gpt.hpp"
#include "train/gpus.hpp"
#include "train/training.hpp"

/// Training steps a second of two data-parallel processes of one machine, against the same two
/// processes that do not communicate (the floor). `./run bench train --peer` runs PyTorch's
/// DistributedDataParallel beside it.
///
///   ddp_bench [ranks] [--gpus N] [--json] [--smoke]
namespace {

using troupe::bench::Training;

struct Speed {
  double alone = 0;  ///< steps a second without communication
  double together = 0;
};

/// Steps a second of `net` under SGD; `loss` computes the loss of one batch, always the same.
template <class Net, class Loss>
double steps_per_second(troupe::train::Context& ctx, Net& net, const Loss& loss,
                        const Training& training) {
  torch::optim::SGD optim(net->parameters(), 0.05);
  return troupe::bench::steps_per_second(ctx, training, [&] {
    optim.zero_grad();
    loss(net).backward();
    optim.step();
  });
}

Speed measure(troupe::train::Context& ctx, const Training& training) {
  if (training.shares_gpu) troupe::bench::share_gpu(ctx.rank());
  return troupe::bench::with_model(ctx, training,
                                   [&](const auto& make_net, const auto& loss) -> Speed {
                                     Speed speed;
                                     {
                                       auto plain = make_net();
                                       plain->to(ctx.device());
                                       speed.alone = steps_per_second(ctx, plain, loss, training);
                                     }
                                     auto net = ctx.prepare(make_net());
                                     speed.together = steps_per_second(ctx, net, loss, training);
                                     return speed;
                                   });
}

}  // namespace

int main(int argc, char** argv) {
  const auto [arguments, cluster] = troupe::bench::begin_training_bench(
      "Training steps a second of data-parallel processes of this machine.",
      "data-parallel steps a second", argc, argv);
  const auto [ranks, gpus, json_only, smoke] = arguments;
  for (const auto& [name, training] : troupe::bench::cases_of(arguments)) {
    const auto result = troupe::train::run<measure>(
        training, {.workers = ranks, .each = troupe::bench::rank_options(ranks, gpus)});
    const auto [alone, together] = *result.value;
    if (!json_only) {
      std::printf("%-28s  %8.1f  floor %8.1f (%3.0f %%)\n", name.c_str(), together, alone,
                  100 * together / alone);
    }
    std::printf(
        "{\"bench\":\"ddp\",\"ranks\":%d,\"model\":\"%s\",\"steps_per_s\":%.3f,\"floor\":%.3f",
        ranks, name.c_str(), together, alone);
    if (training.widths.empty()) {
      const auto tokens = static_cast<double>(training.batch * training.gpt.context);
      std::printf(",\"tflops\":%.1f",
                  together * tokens * troupe::bench::flops_per_token(training.gpt) / 1e12);
    }
    std::printf("}\n");
  }
}
