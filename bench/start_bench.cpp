#include <troupe/train.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include "arguments.hpp"

/// How long a gang takes to start on a private cluster of this machine: from the call of train::run
/// until its function runs on every rank and the last one has the communicator of its context. The
/// first gang of the cluster, and the median of the gangs after it. `./run bench train --peer`
/// starts torchrun and PyTorch's processes beside it, and counts from the start of this program
/// too: `at_s` of a JSON line is when the first gang was there, on the system's monotonic clock.
///
///   start_bench [ranks] [--json] [--smoke]
namespace {

struct Config {};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// -> when the last rank had its communicator. All ranks have the same clock.
double start(troupe::train::Context& ctx, const Config&) {
  auto& communicator = ctx.communicator();
  std::array<double, 1> at{now_s()};
  communicator.all_reduce(std::span<double>(at), troupe::train::ReduceOp::Max);
  return at.front();
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 2;
  bool json_only = false;
  bool smoke = false;
  troupe::bench::Arguments arguments("How long a gang takes to start.");
  arguments.option("ranks", ranks, "processes");
  arguments.flag("--json", json_only, "JSON lines only");
  arguments.flag("--smoke", smoke, "a few gangs: shows that it runs, not how fast");
  arguments.parse(argc, argv);
  const auto cluster = troupe::init({.cpus = static_cast<double>(ranks)});

  const auto start_gang = [&] { return *troupe::train::run<start>({}, {.workers = ranks}).value; };
  double began = now_s();
  const auto first_at = start_gang();
  const auto first_ms = 1e3 * (first_at - began);
  std::vector<double> later_ms(smoke ? 3 : 21);
  for (auto& ms : later_ms) {
    began = now_s();
    ms = 1e3 * (start_gang() - began);
  }
  const auto median = later_ms.begin() + static_cast<std::ptrdiff_t>(later_ms.size() / 2);
  std::ranges::nth_element(later_ms, median);

  if (!json_only) {
    std::printf("start of a gang of %d ranks: the first %.2f ms, later ones %.2f ms\n", ranks,
                first_ms, *median);
  }
  const auto print = [&](const char* how, const char* field, double value) {
    std::printf("{\"bench\":\"gang start\",\"ranks\":%d,\"how\":\"%s\",\"%s\":%.6f}\n", ranks, how,
                field, value);
  };
  print("whole command", "at_s", first_at);
  print("first", "ms", first_ms);
  print("later", "ms", *median);
}
