#include "tune/many_trials.hpp"

#include <cstdint>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>
#include <troupe/cluster.hpp>
#include <troupe/tune.hpp>

#include "arguments.hpp"

namespace troupe::bench {
namespace {

constexpr int kPlaces = 16;

struct Config {
  int milliseconds = 0;
};

void sleeps(tune::Context& ctx, const Config& config) {
  ::usleep(static_cast<useconds_t>(config.milliseconds) * 1000);
  ctx.report({{"score", 1.0}});
}

auto run(std::uint64_t trials, int milliseconds) {
  return tune::run<sleeps>({.trials = trials,
                            .metric = "score",
                            .config = {.milliseconds = milliseconds},
                            .show = tune::Show::None});
}

/// Of this process.
double resident_kib() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

void one_second_trials(const Report& report, const std::string& name, int trials) {
  const auto cluster = troupe::init({.cpus = kPlaces});
  const auto start = Clock::now();
  run(static_cast<std::uint64_t>(trials), 1000);
  const auto seconds = seconds_since(start);
  const double rounds = (trials + kPlaces - 1) / kPlaces;
  report.print(name, seconds, "s",
               fmt::format("{} one-second trials on {} places, {:.2f} % above {} s", trials,
                           kPlaces, 100 * (seconds / rounds - 1), rounds));
}

void memory(const Report& report) {
  const auto cluster = troupe::init({.cpus = 4});
  const int few = sized(report, 1000, 20), many = sized(report, 10'000, 60);
  const auto first = run(static_cast<std::uint64_t>(few), 0);
  const auto before = resident_kib();
  const auto start = Clock::now();
  const auto second = run(static_cast<std::uint64_t>(many), 0);
  const auto seconds = seconds_since(start);
  report.print(
      "driver_kib_per_trial", (resident_kib() - before) / many, "KiB",
      fmt::format("of the driver, that a run of {} trials adds; it took {:.1f} s", many, seconds));
}

}  // namespace

void many_trials(const Report& report) {
  one_second_trials(report, "one_second_trials_64_s", sized(report, 64, 16));
  if (!report.smoke()) one_second_trials(report, "one_second_trials_1000_s", 1000);
  memory(report);
}

}  // namespace troupe::bench
