// A driver for the tests of sweeps that lose nodes, their cluster or their user: test_sweep_driver
// FOLDER [MODE]. Without a mode: one trial, whose first attempt reports and then waits for its end.
// "on two nodes": its ranks must be on two nodes. "many": eight trials, as many at once as fit,
// each of which reports once and then waits for its end.
#include <iostream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include <troupe/tune.hpp>

#include <troupe/cluster.hpp>

namespace {

struct Config {
  double lr = 0.5;
  std::string folder = {};
};

void waits_once(troupe::tune::Context& ctx, const Config& config) {
  const auto mine = config.folder + "/rank-" + std::to_string(ctx.rank());
  const bool first = mkdir(mine.c_str(), 0755) == 0;
  ctx.report({{"accuracy", config.lr}});
  if (!first) return;
  mkdir((mine + "/waits").c_str(), 0755);
  for (;;) pause();
}

void waits(troupe::tune::Context& ctx, const Config& config) {
  ctx.report({{"accuracy", config.lr}});
  if (ctx.rank() == 0) std::cout << "reported" << std::endl;
  for (;;) pause();
}

void sweep_one(const std::string& folder, troupe::Strategy strategy) {
  const auto results = troupe::tune::run<waits_once>({.trials = 1,
                                                      .metric = "accuracy",
                                                      .mode = troupe::tune::Max,
                                                      .each = {.workers = 2, .strategy = strategy},
                                                      .config = {.folder = folder},
                                                      .show = troupe::tune::Show::Lines});
  const auto& trial = results.trials()[0].trial;
  std::cout << "status " << to_string(trial.status) << ", failures " << trial.failures
            << ", restarts " << trial.restarts << std::endl;
}

void sweep_many(const std::string& folder) {
  const auto results = troupe::tune::run<waits>({.trials = 8,
                                                 .metric = "accuracy",
                                                 .mode = troupe::tune::Max,
                                                 .each = {.workers = 2},
                                                 .storage = folder,
                                                 .show = troupe::tune::Show::Lines});
  std::cout << "ended early: " << results.ended_early() << std::endl;
  for (const auto& result : results.trials()) {
    const auto& trial = result.trial;
    std::cout << "trial " << trial.id << ": " << to_string(trial.status) << ", failures "
              << trial.failures << ", restarts " << trial.restarts << ", " << trial.reason
              << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const std::string mode = argc > 2 ? argv[2] : "";
  if (mode == "many") {
    sweep_many(argv[1]);
  } else {
    sweep_one(argv[1], mode.empty() ? troupe::Spread : troupe::StrictSpread);
  }
}
