#include <troupe/train.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/utils.h>

#include "train/gpus.hpp"
#include "train/rates.hpp"
#include "train/training.hpp"

/// All-reduce between two processes of one machine, or of the cluster that TROUPE_ADDRESS names:
/// Troupe's host communicator, into a buffer of the user's and, where all are on one node, into one
/// of the communicator's own, which is reduced in place; or, of tensors on a GPU, its NCCL
/// communicator. The time comes with the algorithm and the bus bandwidth (rates.hpp).
/// `./run bench train [--hosts 2] --peer` runs torch.distributed beside it.
///
///   collective_bench [ranks] [--gpus N] [--json] [--smoke]
namespace {

using Clock = std::chrono::steady_clock;

struct Config {
  bool smoke = false;  ///< a few small ones: shows that it runs, not how fast
  bool gpu = false;
  bool shares_gpu = false;  ///< with other ranks
};
struct Row {
  std::size_t bytes = 0;
  std::string how;  ///< "copied", "in place" or "nccl"
  double seconds = 0;
};

int repeats_of(std::size_t size, const Config& config) {
  if (config.smoke) return 2;
  if (config.shares_gpu) return size > 500'000 ? 3 : 50;  // ranks take turns of milliseconds
  if (config.gpu) return size > 500'000 ? 15 : 1'000;
  return size > 4'000'000 ? 15 : size > 500'000 ? 60 : size > 4'000 ? 1'000 : 20'000;
}

double time_of(troupe::train::Communicator& comm, float* data, std::size_t size, int repeats) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    comm.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) {
      comm.all_reduce(data, size, troupe::train::DataType::Float32,
                      troupe::train::ReduceOp::Average);
    }
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / repeats);
  }
  return best;
}

std::vector<Row> measure(troupe::train::Context& ctx, const Config& config) {
  if (config.shares_gpu) troupe::bench::share_gpu(ctx.rank());
  if (config.gpu && !ctx.device().is_cuda())
    throw std::runtime_error("--gpus: this machine has no GPU that LibTorch can use");
  auto& comm = ctx.communicator();
  std::vector<Row> rows;
  for (std::size_t bytes : {4ul, 1ul << 10, 64ul << 10, 4ul << 20, 64ul << 20}) {
    if (config.smoke && bytes > 64 << 10) break;
    const auto size = bytes / sizeof(float);
    const int repeats = repeats_of(size, config);
    const auto own = torch::ones({static_cast<std::int64_t>(size)}, ctx.device());
    auto* data = own.data_ptr<float>();
    rows.push_back({bytes, config.gpu ? "nccl" : "copied", time_of(comm, data, size, repeats)});
    if (config.gpu) continue;
    const auto shared = comm.allocate(bytes);
    if (!shared) continue;
    auto* in_place = static_cast<float*>(shared.get());
    std::copy(data, data + size, in_place);
    rows.push_back({bytes, "in place", time_of(comm, in_place, size, repeats)});
  }
  return rows;
}

void print(const Row& row, int ranks, bool json_only) {
  const double us = row.seconds * 1e6;
  const auto [algorithm, bus] =
      troupe::bench::bandwidth_of_all_reduce(row.bytes, row.seconds, ranks);
  if (!json_only) {
    std::printf("%10zu B  %-8s  %10.2f us  %7.2f GB/s, bus %7.2f GB/s\n", row.bytes,
                row.how.c_str(), us, algorithm, bus);
  }
  std::printf("{\"bench\":\"all_reduce\",\"ranks\":%d,\"bytes\":%zu,\"how\":\"%s\",\"us\":%.3f",
              ranks, row.bytes, row.how.c_str(), us);
  std::printf(",\"gb_per_s\":%.6f,\"bus_gb_per_s\":%.6f}\n", algorithm, bus);
}

}  // namespace

int main(int argc, char** argv) {
  const auto [arguments, cluster] = troupe::bench::begin_training_bench(
      "All-reduce between processes of this machine, or of the cluster that TROUPE_ADDRESS names.",
      "all-reduce of float32, average", argc, argv);
  const auto [ranks, gpus, json_only, smoke] = arguments;
  const Config config{.smoke = smoke, .gpu = gpus > 0, .shares_gpu = gpus > 0 && gpus < ranks};
  const auto result = troupe::train::run<measure>(
      config, {.workers = ranks, .each = troupe::bench::rank_options(ranks, gpus)});
  for (const auto& row : *result.value) print(row, ranks, json_only);
}
