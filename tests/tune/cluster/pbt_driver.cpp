// A driver for the tests of populations on several nodes: pbt_driver FOLDER MEMBERS RANKS HOLD KEEP
// [--address HOST:PORT]. It goes on with the last run that did not come to its end. Of each member
// the best KEEP checkpoints are kept; 0: all. A member with a rank on node HOLD that has trained three steps, and goes
// on from no copy of a checkpoint, waits there for its end.
#include <filesystem>
#include <iostream>
#include <string>

#include <unistd.h>

#include <troupe/tune.hpp>

#include <troupe/cluster.hpp>

#include "support/member.hpp"

namespace tune = troupe::tune;

namespace {

struct Config {
  double lr = 0.5;
  int hold = -1;
  std::string folder = {};
};

void trains(tune::Context& ctx, const Config& config) {
  tune::MemberAttempt member(ctx);
  while (member.steps() < 8) {
    const bool has_copy = ctx.restore_from().native().find("/received/") != std::string::npos;
    if (member.steps() >= 3 && !has_copy && static_cast<int>(ctx.gang().node()) == config.hold) {
      tune::make_file(config.folder + "/held");
      for (;;) pause();
    }
    if (member.step(config.lr) == troupe::Verdict::Stop) return;
  }
}

bool has_run(const std::string& storage) {
  return std::filesystem::exists(storage + "/run-1/journal.jsonl");
}

}  // namespace

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const std::string folder = argv[1];
  const auto results = tune::run<trains>(
      {.space = {{"lr", tune::uniform(0, 1)}},
       .trials = std::stoull(argv[2]),
       .metric = "score",
       .mode = tune::Max,
       .scheduler = tune::pbt({.interval = 1, .mutate = {{"lr", tune::uniform(0, 1)}}}),
       .each = {.workers = std::stoi(argv[3]), .strategy = troupe::Spread},
       .storage = folder + "/storage",
       .resume = has_run(folder + "/storage"),
       .keep_checkpoints = std::stoull(argv[5]),
       .config = {.hold = std::stoi(argv[4]), .folder = folder},
       .show = tune::Show::Lines});
  for (const auto& result : results.trials()) {
    const auto& trial = result.trial;
    std::cout << "trial " << trial.id << ": " << to_string(trial.status) << " at t=" << trial.t
              << ", failures " << trial.failures << ", restarts " << trial.restarts << std::endl;
  }
}
