// A driver for the tests of sweeps that lose nodes, their cluster or their user: test_sweep_driver
// FOLDER [MODE]. Without a mode: one trial, whose first attempt reports and then waits for its end.
// "on two nodes": its ranks must be on two nodes. "with checkpoints": one trial of five reports with
// checkpoints, whose first attempt waits for its end after the third. "many": eight trials, as many at once as fit,
// each of which reports once and then waits for its end. "three": three searches one after another, in
// FOLDER/1 to FOLDER/3, each of one trial whose first attempt waits as that of "with checkpoints" does,
// unless there is a file FOLDER/ends; a search whose run is there already goes on with it.
#include <filesystem>
#include <fstream>
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

void counts_to_five(troupe::tune::Context& ctx, const Config& config) {
  int step = 0;
  if (!ctx.restore_from().empty()) std::ifstream(ctx.restore_from()) >> step;
  const int from = step;
  while (step < 5) {
    ++step;
    const auto checkpoint = ctx.storage() / ("step-" + std::to_string(step));
    if (ctx.rank() == 0) {
      std::filesystem::create_directories(ctx.storage());
      std::ofstream(checkpoint) << step;
    }
    ctx.report({{"accuracy", step}, {"from", from}}, checkpoint);
    if (from > 0 || step < 3 || std::filesystem::exists(config.folder + "/ends")) continue;
    std::filesystem::create_directories(config.folder + "/rank-" + std::to_string(ctx.rank()) +
                                        "/waits");
    for (;;) pause();
  }
}

void waits(troupe::tune::Context& ctx, const Config& config) {
  ctx.report({{"accuracy", config.lr}});
  if (ctx.rank() == 0) std::cout << "reported" << std::endl;
  for (;;) pause();
}

void say_end_of(const troupe::tune::Trial& trial) {
  std::cout << "status " << to_string(trial.status) << ", failures " << trial.failures
            << ", restarts " << trial.restarts << std::endl;
}

void sweep_with_checkpoints(const std::string& folder) {
  const auto results =
      troupe::tune::run<counts_to_five>({.trials = 1,
                                         .metric = "accuracy",
                                         .mode = troupe::tune::Max,
                                         .each = {.workers = 2, .strategy = troupe::Spread},
                                         .storage = folder,
                                         .config = {.folder = folder},
                                         .show = troupe::tune::Show::Lines});
  say_end_of(results.trials()[0].trial);
}

void three_sweeps(const std::string& folder) {
  for (const auto* number : {"1", "2", "3"}) {
    const auto results = troupe::tune::run<counts_to_five>({.trials = 1,
                                                            .metric = "accuracy",
                                                            .mode = troupe::tune::Max,
                                                            .storage = folder + "/" + number,
                                                            .resume = true,
                                                            .config = {.folder = folder},
                                                            .show = troupe::tune::Show::Lines});
    std::cout << "search " << number << ": best " << results.best() << std::endl;
  }
}

void sweep_one(const std::string& folder, troupe::Strategy strategy) {
  const auto results = troupe::tune::run<waits_once>({.trials = 1,
                                                      .metric = "accuracy",
                                                      .mode = troupe::tune::Max,
                                                      .each = {.workers = 2, .strategy = strategy},
                                                      .config = {.folder = folder},
                                                      .show = troupe::tune::Show::Lines});
  say_end_of(results.trials()[0].trial);
}

int sweep_many(const std::string& folder) {
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
  return results.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto cluster = troupe::init(argc, argv);
    const std::string mode = argc > 2 ? argv[2] : "";
    if (mode == "many") {
      return sweep_many(argv[1]);
    } else if (mode == "three") {
      three_sweeps(argv[1]);
    } else if (mode == "with checkpoints") {
      sweep_with_checkpoints(argv[1]);
    } else {
      sweep_one(argv[1], mode.empty() ? troupe::Spread : troupe::StrictSpread);
    }
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << std::endl;
    return 1;
  }
}
