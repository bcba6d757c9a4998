#include <troupe/train.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include "train/gpus.hpp"
#include "train/training.hpp"

/// Training steps a second under Adam whose state is cut among the ranks (ZeRO, stage 1), also with
/// their gradients (stage 2) and parameters (stage 3, which come ahead of their use, or on demand),
/// against the same ranks with the whole of all (stage 0), and the memory that each takes; in
/// float32, and in bfloat16 with master weights.
/// `./run bench train --peer` runs PyTorch's ZeroRedundancyOptimizer beside it.
///
///   zero_bench [ranks] [--gpus N] [--json] [--smoke]
namespace {

using troupe::bench::Training;

constexpr troupe::train::MixedPrecision kMixed{
    .type = troupe::train::MixedPrecision::Type::BFloat16, .master_weights = true};

/// A stage of ZeRO, as rows name it.
struct Way {
  const char* how;
  const char* text;
  troupe::train::ZeroOptions zero;
};
constexpr std::array<Way, 5> kWays{
    {{"plain", "stage 0", {.stage = 0}},
     {"zero", "stage 1", {.stage = 1}},
     {"zero 2", "stage 2", {.stage = 2}},
     {"zero 3", "stage 3", {.stage = 3}},
     {"zero 3 on demand", "stage 3, on demand", {.stage = 3, .prefetch = false}}}};

/// Main memory of a process; 0 where the rank is on a GPU. Memory that ranks share counts in both
/// sums, divided by the number of processes that have it.
struct Memory {
  std::int64_t allocated_bytes = 0;  ///< of malloc and of shared memory
  /// More than is allocated where malloc keeps what was freed, or the kernel has made small pages
  /// into large ones.
  std::int64_t resident_bytes = 0;
};

/// Of one way. Bytes are those of the rank that has most.
struct Measured {
  double steps_per_s = 0;
  std::int64_t state_bytes = 0;  ///< of the optimizer's two averages
  std::int64_t peak_bytes = 0;   ///< of tensors on the GPU during the steps; 0 on a CPU
  Memory held;                   ///< more between backward and step than before the model
  /// The bytes for parameters, gradients and the optimizer's state by the formula of the paper.
  std::int64_t formula_bytes = 0;
  double operator_us = 0;  ///< of this thread, for an operator that makes a view of a parameter
};

std::int64_t bytes_of_state(const torch::optim::Adam& optimizer) {
  std::size_t bytes = 0;
  for (const auto& [parameter, state] : optimizer.state()) {
    const auto& averages = static_cast<const torch::optim::AdamParamState&>(*state);
    bytes += averages.exp_avg().nbytes() + averages.exp_avg_sq().nbytes();
  }
  return static_cast<std::int64_t>(bytes);
}

/// Through c10's interface of every kind of device, so that no header of CUDA is needed.
void forget_peak(c10::Device device) {
  if (device.is_cuda()) c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}
std::int64_t peak_bytes(c10::Device device) {
  if (!device.is_cuda()) return 0;
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .peak;
}

/// Of this process, but for files.
Memory held(c10::Device device) {
  if (device.is_cuda()) return {};
  ::malloc_trim(0);
  std::int64_t anonymous = 0, shared = 0;
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    const auto bytes = [&] { return 1024 * std::stoll(line.substr(line.find(':') + 1)); };
    if (line.starts_with("Pss_Anon:")) anonymous = bytes();
    if (line.starts_with("Pss_Shmem:")) shared = bytes();
  }
  const auto heap = ::mallinfo2();
  return {.allocated_bytes = static_cast<std::int64_t>(heap.uordblks + heap.hblkhd) + shared,
          .resident_bytes = anonymous + shared};
}

/// Of Adam on P parameters, 4 bytes each and as many of their gradients, or half of both and a copy
/// of the parameters in float32 (Rajbhandari et al., SC 2020, sections 3.1 and 5).
std::int64_t formula_bytes(std::int64_t parameters, const troupe::train::ContextOptions& options,
                           int ranks) {
  const int value = options.mixed_precision.master_weights ? 2 : 4;
  const int state = 16 - 2 * value;
  const int cut =
      std::array{0, state, state + value, 16}.at(static_cast<std::size_t>(options.zero.stage));
  return parameters * (16 - cut) + parameters * cut / ranks;
}

double operator_us(const torch::Tensor& parameter) {
  const torch::NoGradGuard no_grad;
  constexpr int kTimes = 20'000;
  const auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) parameter.detach();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - started;
  return took.count() / kTimes;
}

/// The rank's bytes become those of the rank that has most. A collective.
void take_maximum(troupe::train::Context& ctx, Measured& measured) {
  const auto bytes = torch::tensor({measured.state_bytes, measured.peak_bytes,
                                    measured.held.allocated_bytes, measured.held.resident_bytes},
                                   torch::kInt64)
                         .to(ctx.device());
  ctx.communicator().all_reduce(bytes.data_ptr(), 4, troupe::train::DataType::Int64,
                                troupe::train::ReduceOp::Max);
  measured.state_bytes = bytes[0].item<std::int64_t>();
  measured.peak_bytes = bytes[1].item<std::int64_t>();
  measured.held = {.allocated_bytes = bytes[2].item<std::int64_t>(),
                   .resident_bytes = bytes[3].item<std::int64_t>()};
}

Measured measure(troupe::train::Context& ctx, const Training& training) {
  if (training.shares_gpu) troupe::bench::share_gpu(ctx.rank());
  return troupe::bench::with_model(
      ctx, training, [&](const auto& make_net, const auto& loss) -> Measured {
        const auto before = held(ctx.device());
        auto net = make_net();
        Measured measured;
        for (const auto& parameter : net->parameters()) measured.formula_bytes += parameter.numel();
        measured.formula_bytes =
            formula_bytes(measured.formula_bytes, ctx.options(), ctx.world_size());
        ctx.prepare(net);
        // LibTorch's Adam goes from parameter to parameter with a dozen kernels each, as PyTorch's
        // does on a CPU (foreach=False, fused=False); on a GPU PyTorch's default is foreach=True,
        // which has one kernel for many parameters.
        auto optimizer =
            ctx.prepare(torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(1e-5)));
        const auto backward = [&] {
          optimizer.zero_grad();
          at::Tensor value;
          {
            const auto autocast = ctx.autocast();
            value = loss(net);
          }
          value.backward();
        };
        const auto step = [&] {
          backward();
          optimizer.step();
        };
        step();  // which makes the state
        forget_peak(ctx.device());
        measured.steps_per_s = troupe::bench::steps_per_second(ctx, training, step);
        measured.state_bytes = bytes_of_state(optimizer);
        measured.peak_bytes = peak_bytes(ctx.device());
        backward();
        const auto now = held(ctx.device());
        measured.held = {.allocated_bytes = now.allocated_bytes - before.allocated_bytes,
                         .resident_bytes = now.resident_bytes - before.resident_bytes};
        {
          const auto whole = ctx.gathered(net);
          measured.operator_us = operator_us(net->parameters().front());
        }
        take_maximum(ctx, measured);
        return measured;
      });
}

void print_row(int ranks, const std::string& model, const std::string& how,
               const Measured& measured) {
  std::printf(
      "{\"bench\":\"zero\",\"ranks\":%d,\"model\":\"%s\",\"how\":\"%s\",\"steps_per_s\":%.3f,"
      "\"state_bytes\":%lld,\"operator_us\":%.3f",
      ranks, model.c_str(), how.c_str(), measured.steps_per_s,
      static_cast<long long>(measured.state_bytes), measured.operator_us);
  if (measured.peak_bytes > 0)
    std::printf(",\"peak_bytes\":%lld", static_cast<long long>(measured.peak_bytes));
  if (measured.held.resident_bytes > 0)
    std::printf(",\"held_bytes\":%lld,\"resident_bytes\":%lld,\"formula_bytes\":%lld",
                static_cast<long long>(measured.held.allocated_bytes),
                static_cast<long long>(measured.held.resident_bytes),
                static_cast<long long>(measured.formula_bytes));
  std::printf("}\n");
}

void print_text(const std::string& model, const std::array<Measured, kWays.size()>& of_way) {
  const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  const auto& plain = of_way.front();
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    const auto& [steps_per_s, state, peak, held, formula, operator_us] = of_way[way];
    std::printf("%-38s  %-18s %8.1f (%3.0f %%)  of a rank: state %.2f MB", model.c_str(),
                kWays[way].text, steps_per_s, 100 * steps_per_s / plain.steps_per_s,
                megabytes(state));
    if (peak > 0) std::printf(", peak on the GPU %.0f MB", megabytes(peak));
    if (held.resident_bytes > 0) {
      std::printf(", held before a step %.0f MB (by the paper %.0f MB, resident %.0f MB)",
                  megabytes(held.allocated_bytes), megabytes(formula),
                  megabytes(held.resident_bytes));
    }
    std::printf(", %.2f us for a view of a parameter\n", operator_us);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto [arguments, cluster] = troupe::bench::begin_training_bench(
      "Training steps a second with the optimizer's state cut among processes of this machine, and "
      "with the whole of it in each.",
      "data-parallel steps a second under Adam", argc, argv);
  const auto [ranks, gpus, json_only, smoke] = arguments;
  auto cases = troupe::bench::cases_of(arguments);
  // The smallest model's state is no memory that anyone would save.
  if (!smoke) cases.erase(cases.begin());
  for (auto& [name, training] : cases) {
    // The numbers of steps are those of ddp_bench, whose SGD takes half as long on a CPU as Adam.
    if (gpus == 0) training.steps = std::max(training.steps / 2, 1);
    for (const bool is_mixed : {false, true}) {
      const auto precision = is_mixed ? kMixed : troupe::train::MixedPrecision{};
      std::array<Measured, kWays.size()> of_way;
      for (std::size_t way = 0; way < kWays.size(); ++way) {
        const auto result = troupe::train::run<measure>(
            training, {.workers = ranks,
                       .each = troupe::bench::rank_options(ranks, gpus),
                       .context = {.zero = kWays[way].zero, .mixed_precision = precision}});
        of_way[way] = *result.value;
      }
      const std::string prefix = is_mixed ? "bfloat16 " : "";
      if (!json_only) print_text(prefix + name, of_way);
      for (std::size_t way = 0; way < kWays.size(); ++way)
        print_row(ranks, name, prefix + kWays[way].how, of_way[way]);
    }
  }
}
