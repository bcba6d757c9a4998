// A driver for the test of lost nodes: one trial, whose first attempt reports and then waits for its end. With a second
// argument its ranks must be on two nodes.
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

}  // namespace

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const auto strategy = argc > 2 ? troupe::StrictSpread : troupe::Spread;
  const auto results = troupe::tune::run<waits_once>({.trials = 1,
                                                      .metric = "accuracy",
                                                      .mode = troupe::tune::Max,
                                                      .each = {.workers = 2, .strategy = strategy},
                                                      .config = {.folder = argv[1]},
                                                      .show = troupe::tune::Show::Lines});
  const auto& trial = results.trials()[0].trial;
  std::cout << "status " << to_string(trial.status) << ", failures " << trial.failures << ", restarts "
            << trial.restarts << std::endl;
}
