#include <troupe/train.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>

#include "arguments.hpp"
#include "core/harness.hpp"

/// How long a gang takes to start on a private cluster of this machine: from the call of train::run
/// until its function runs on every rank and the last one has the communicator of its context. The
/// first gang of the cluster, and the median of the gangs after it. `./run bench train --peer`
/// starts torchrun and PyTorch's processes beside it, and counts from the start of this program
/// too: `at_s` of a JSON line is when the first gang was there, on the system's monotonic clock.
///
///   start_bench [ranks] [--json] [--smoke]
namespace {

using troupe::bench::Clock;

struct Config {};

/// On the system's monotonic clock, which is the same for all processes.
double seconds_at(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// -> when the last rank had its communicator.
double start(troupe::train::Context& ctx, const Config&) {
  auto& communicator = ctx.communicator();
  std::array<double, 1> at{seconds_at(Clock::now())};
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
  auto began = Clock::now();
  const auto first_at = start_gang();
  const auto first_ms = 1e3 * (first_at - seconds_at(began));
  std::vector<double> all_later_ms(smoke ? 3 : 21);
  for (auto& ms : all_later_ms) {
    began = Clock::now();
    ms = 1e3 * (start_gang() - seconds_at(began));
  }
  const auto later_ms = troupe::bench::median(all_later_ms);

  if (!json_only) {
    std::printf("start of a gang of %d ranks: the first %.2f ms, later ones %.2f ms\n", ranks,
                first_ms, later_ms);
  }
  const auto print = [&](const char* how, const char* field, double value) {
    std::printf("{\"bench\":\"gang start\",\"ranks\":%d,\"how\":\"%s\",\"%s\":%.6f}\n", ranks, how,
                field, value);
  };
  print("whole command", "at_s", first_at);
  print("first", "ms", first_ms);
  print("later", "ms", later_ms);
}
