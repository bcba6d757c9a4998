#include <troupe/train.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include "arguments.hpp"

/// All-reduce between two processes of one machine: Troupe's host communicator, into a buffer of
/// the user's and into one of the communicator's own, which is reduced in place. The peer's figures
/// are gloo's (as torch.distributed uses it), measured on a machine of two cores; run the peer
/// beside this for a ratio that holds on another one.
///
///   collective_bench [ranks] [--json] [--smoke]
namespace {

using Clock = std::chrono::steady_clock;

struct Config {
  bool smoke = false;  ///< a few small ones: shows that it runs, not how fast
};
struct Row {
  std::size_t bytes = 0;
  bool in_place = false;
  double seconds = 0;
};

int repeats_of(std::size_t size, const Config& config) {
  if (config.smoke) return 2;
  return size > 4'000'000 ? 15 : size > 500'000 ? 60 : size > 4'000 ? 1'000 : 20'000;
}

double time_of(troupe::train::Communicator& comm, std::span<float> data, int repeats) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    comm.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) comm.all_reduce(data, troupe::train::ReduceOp::Average);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / repeats);
  }
  return best;
}

std::vector<Row> measure(troupe::train::Context& ctx, const Config& config) {
  auto& comm = ctx.communicator();
  std::vector<Row> rows;
  for (std::size_t bytes : {4ul, 1ul << 10, 64ul << 10, 4ul << 20, 64ul << 20}) {
    if (config.smoke && bytes > 64 << 10) break;
    const int repeats = repeats_of(bytes / sizeof(float), config);
    std::vector<float> own(bytes / sizeof(float), 1.0f);
    rows.push_back({bytes, false, time_of(comm, own, repeats)});
    const auto shared = comm.allocate(bytes);
    if (!shared) continue;
    const std::span<float> data(static_cast<float*>(shared.get()), own.size());
    std::copy(own.begin(), own.end(), data.begin());
    rows.push_back({bytes, true, time_of(comm, data, repeats)});
  }
  return rows;
}

/// Of gloo, two ranks, in microseconds; 0: not measured.
double peer_us(std::size_t bytes) {
  switch (bytes) {
    case 4:
      return 352;
    case 64 << 10:
      return 1263;
    case 4 << 20:
      return 4300;
    case 64 << 20:
      return 44000;
    default:
      return 0;
  }
}

void print(const Row& row, int ranks, bool json_only) {
  const double us = row.seconds * 1e6;
  const double peer = ranks == 2 ? peer_us(row.bytes) : 0;
  const auto* how = row.in_place ? "in place" : "copied";
  if (!json_only) {
    std::printf("%10zu B  %-8s  %10.2f us  %7.2f GB/s", row.bytes, how, us,
                static_cast<double>(row.bytes) / row.seconds / 1e9);
    if (peer > 0) std::printf("  gloo %8.0f us  %6.1fx", peer, peer / us);
    std::printf("\n");
  }
  std::printf(
      "{\"bench\":\"all_reduce\",\"ranks\":%d,\"bytes\":%zu,\"how\":\"%s\",\"us\":%.3f,\"peer_us\":"
      "%.0f}\n",
      ranks, row.bytes, how, us, peer);
}

}  // namespace

int main(int argc, char** argv) {
  // A worker process runs main, too, up to the first use of a cluster.
  troupe::bench::Arguments arguments("All-reduce between processes of this machine.");
  int ranks = 2;
  Config config;
  bool json_only = false;
  arguments.option("ranks", ranks, "processes");
  arguments.flag("--json", json_only, "JSON lines only");
  arguments.flag("--smoke", config.smoke, "a few small ones: shows that it runs, not how fast");
  arguments.parse(argc, argv);
  const auto result = troupe::train::run<measure>(
      config, {.workers = ranks, .where = troupe::train::Where::ThisNode});
  if (!json_only) {
    std::printf("all-reduce of float32, average, %d ranks, %ld cores\n", ranks,
                ::sysconf(_SC_NPROCESSORS_ONLN));
  }
  for (const auto& row : *result.value) print(row, ranks, json_only);
}
