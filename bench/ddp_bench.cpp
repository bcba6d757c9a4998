#include <troupe/train.hpp>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "train/gpt.hpp"
#include "train/gpus.hpp"
#include "train/rates.hpp"
#include "train/training.hpp"

/// Training steps a second of two data-parallel processes of one machine, or of the cluster that
/// TROUPE_ADDRESS names, against the same two processes that do not communicate (the floor).
/// `./run bench train [--hosts 2] --peer` runs PyTorch's DistributedDataParallel beside it. On GPUs
/// the models end with a GPT in bfloat16, whose row says what the GPU computes, as a share of its
/// peak (rates.hpp).
///
///   ddp_bench [ranks] [--gpus N] [--peak-tflops N] [--compressed] [--json] [--smoke]
///
/// --compressed: each model also with gradients that are sent in bfloat16.
namespace {

using troupe::bench::Training;

struct Speed {
  double alone = 0;  ///< steps a second without communication
  double together = 0;
  std::string gpu;  ///< its name; empty: a CPU
};
/// What main prints of each model.
struct Printed {
  troupe::bench::TrainingArguments arguments;
  double peak_tflops = 0;
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
                                     Speed speed{.gpu = troupe::bench::gpu_name(ctx)};
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

void print(const Printed& how_to, const std::string& model, const std::string& how,
           const Training& training, const Speed& speed) {
  const auto& arguments = how_to.arguments;
  const auto& [alone, together, gpu] = speed;
  const double step_ms = 1e3 / together;
  std::optional<troupe::bench::Computing> computing;
  if (training.widths.empty()) {
    computing = troupe::bench::computing(
        training.gpt, static_cast<double>(training.batch * training.gpt.context), together,
        arguments.ranks, arguments.gpus, gpu, how_to.peak_tflops);
  }
  if (!arguments.json_only) {
    const auto name = how.empty() ? model : model + " " + how;
    std::printf("%-36s  %8.1f  floor %8.1f (%3.0f %%)  %10.3f ms%s%s\n", name.c_str(), together,
                alone, 100 * together / alone, step_ms, computing ? "  " : "",
                computing ? computing->text().c_str() : "");
  }
  std::printf("{\"bench\":\"ddp\",\"ranks\":%d,\"model\":\"%s\",\"how\":\"%s\"", arguments.ranks,
              model.c_str(), how.c_str());
  std::printf(",\"steps_per_s\":%.3f,\"floor\":%.3f,\"step_ms\":%.4f", together, alone, step_ms);
  if (computing) {
    std::printf(",\"gpu\":\"%s\",\"tflops\":%.1f", computing->gpu.c_str(), computing->tflops);
    if (computing->peak)
      std::printf(",\"peak_tflops\":%g,\"share_of_peak\":%.4f", *computing->peak,
                  *computing->share());
  }
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  bool compressed = false;
  double peak_tflops = 0;
  const auto [arguments, cluster] = troupe::bench::begin_training_bench(
      "Training steps a second of data-parallel processes of this machine, or of the cluster that "
      "TROUPE_ADDRESS names.",
      "data-parallel steps a second", argc, argv, [&](troupe::bench::Arguments& own) {
        own.flag("--compressed", compressed,
                 "each model also with gradients that are sent in bfloat16");
        own.option("--peak-tflops", peak_tflops,
                   "the dense peak of the GPU in bfloat16; 0: by the name of the GPU");
      });
  using Compression = troupe::train::GradientCompression;
  std::vector<std::pair<std::string, Compression>> ways{{"", Compression::None}};
  if (compressed) ways.emplace_back("bfloat16", Compression::BFloat16);
  for (const auto& [name, training] : troupe::bench::cases_of(arguments)) {
    for (const auto& [how, compression] : ways) {
      const auto result = troupe::train::run<measure>(
          training, {.workers = arguments.ranks,
                     .each = troupe::bench::rank_options(arguments.ranks, arguments.gpus),
                     .context = {.data_parallel = {.compression = compression}}});
      print({arguments, peak_tflops}, name, how, training, *result.value);
    }
  }
}
