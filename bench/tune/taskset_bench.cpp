// Searches over tables of real learning curves in virtual time, beside the regrets of another
// simulation of the same rules (reference.csv of the data set): mean over seeds, for each table, at
// each number of workers, with each scheduler; and how the time to a regret falls with workers.
//
//   taskset_bench [--data FOLDER] [--seeds N] [--json]
//
// FOLDER holds <table>.csv.gz and reference.csv; without it CMake's TROUPE_DATA_DIR.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "arguments.hpp"
#include "built.hpp"
#include "support/taskset.hpp"

namespace {

using namespace troupe::tune;
using namespace troupe::tune::taskset;
namespace fs = std::filesystem;

/// -> the part of the rows at or below the reference, within twice the error of the difference.
void regrets(const fs::path& folder, int seeds, bool json) {
  std::map<std::string, Curves> tables;
  std::map<std::string, double> promotion;  // by row, to compare stopping with
  int rows = 0, met = 0, pairs = 0, better = 0;
  for (const auto& row : references(folder / "reference.csv")) {
    auto& curves = tables[row.task];
    if (curves.empty()) curves = curves_of(folder, row.task);
    const auto best = lowest_of_all(curves);
    std::vector<double> found;
    for (int seed = 0; seed < seeds; ++seed) {
      found.push_back(search(curves, best, scheduler_of(row.algorithm, row.eta),
                             static_cast<std::uint64_t>(seed), row.workers,
                             std::chrono::seconds(row.time))
                          .regret());
    }
    const auto mean = mean_of(found);
    const bool met_here = is_met(mean, row);
    ++rows;
    met += met_here ? 1 : 0;
    const auto place = fmt::format("{}, {} workers, eta {}", row.task, row.workers, row.eta);
    if (row.algorithm == "prom") promotion[place] = mean.value;
    if (const auto at = promotion.find(place); row.algorithm == "stop" && at != promotion.end()) {
      ++pairs;
      better += at->second <= mean.value ? 1 : 0;
    }
    const auto name = fmt::format("{} {}", place, row.algorithm);
    if (json) {
      fmt::print(R"({{"name":"{}","value":{:.5f},"error":{:.5f},"reference":{:.4f},"met":{}}})"
                 "\n",
                 name, mean.value, mean.error, row.mean, met_here);
    } else {
      fmt::print("{:60} {:.5f} +- {:.5f}   reference {:.4f}   {}\n", name, mean.value, mean.error,
                 row.mean, met_here ? "met" : "ABOVE");
    }
  }
  if (json) return;
  fmt::print(
      "{} of {} rows at or below the reference, within twice the standard error; promotion at "
      "or below stopping in {} of {}\n",
      met, rows, better, pairs);
}

/// Mean time until the regret is at most `goal`.
void speedup(const fs::path& folder, int seeds) {
  constexpr double goal = 0.062;
  const auto curves = curves_of(folder, "patch128_LSTM128_bs64");
  const auto best = lowest_of_all(curves);
  for (const bool promote : {false, true}) {
    double one = 0;
    for (const std::size_t workers : {1, 4, 16, 25}) {
      double sum = 0;
      for (int seed = 0; seed < seeds; ++seed) {
        const auto found =
            search(curves, best, asha({.max_t = kSteps, .eta = 4, .promote = promote}),
                   static_cast<std::uint64_t>(seed), workers, std::chrono::seconds(20'000));
        sum += time_to(goal, found).value_or(0);
      }
      const auto mean = sum / seeds;
      if (workers == 1) one = mean;
      fmt::print("{} to regret {}: {:2} workers {:7.1f} steps, {:.1f} times as fast as one\n",
                 promote ? "promotion" : "stopping", goal, workers, mean, one / mean);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string data = TROUPE_DATA_DIR;
  int seeds = 100;
  bool json = false;
  troupe::bench::Arguments arguments("Regrets of searches over tables of real learning curves.");
  arguments.option("--data", data, "folder of the data set");
  arguments.option("--seeds", seeds, "of each row");
  arguments.flag("--json", json, "a JSON line for each figure");
  arguments.parse(argc, argv);
  const fs::path folder =
      fs::exists(fs::path(data) / "taskset") ? fs::path(data) / "taskset" : fs::path(data);
  if (!fs::exists(folder / "reference.csv")) {
    std::cout << "skipped: no reference.csv in '" << folder.string()
              << "'; name the folder by --data\n";
    return 0;
  }
  regrets(folder, seeds, json);
  if (!json) speedup(folder, seeds);
}
