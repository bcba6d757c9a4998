#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "arguments.hpp"
#include "core/harness.hpp"
#include "support/several_objectives.hpp"
#include "tune/algorithms.hpp"

/// How near to the optimum each searcher comes, one trial after the other: the median regret, over
/// seeds, on five functions, with its standard error; of those for several objectives, what part of the best front's hypervolume
/// they lack on two functions and on two with constraints; and how long it takes for a suggestion and the end of its trial.
///
///   searchers_bench [--json] [--smoke] [--seeds N] [--only ALGORITHM,...]
namespace {

namespace tune = troupe::tune;
using namespace troupe::bench;

void regrets(const Report& report, const Algorithm& algorithm, std::uint64_t seeds) {
  const auto functions = std::span(tune::test_functions());
  for (const auto& function : functions.first(report.smoke() ? 1 : functions.size())) {
    const auto start = Clock::now();
    const auto found = tune::regrets_of(algorithm.factory, function, seeds);
    const auto note = fmt::format("seeds: {}; {:.3f} s a search", seeds,
                                  seconds_since(start) / static_cast<double>(seeds));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto name = fmt::format("{}/{}@{}", function.name, algorithm.name, tune::kRegretsAt[i]);
      report.print(name, tune::median(found[i]), "regret", i + 1 == found.size() ? note : "");
      report.print(name + "/error", tune::error_of_median(found[i]), "regret");
    }
  }
}

constexpr std::array<std::size_t, 3> kFrontsAt{200, 500, 1000};

/// A problem with two objectives: the values of the trials of one search, nan where they are beyond
/// the limits.
struct FrontProblem {
  std::string name;
  std::function<std::vector<tune::TwoValues>(const tune::SearcherFactory& searcher,
                                             std::uint64_t trials, std::uint64_t seed)>
      search;
  tune::TwoValues reference;
  double best;  ///< the hypervolume of the best front below the reference
};

/// ZDT1 and ZDT2 with five fields; CONSTR and TNK, which have constraints. The best front of TNK has no
/// closed form: its hypervolume is that of a grid of 4,000 by 4,000 points.
std::vector<FrontProblem> front_problems() {
  const auto free = [](tune::TwoValues (*values)(const std::vector<double>& x)) {
    return [values](const auto& searcher, std::uint64_t trials, std::uint64_t seed) {
      return tune::searched(
          searcher, tune::cube(5, 0, 1),
          [values](const auto& each) { return values(tune::numbers_of(each)); }, trials, seed);
    };
  };
  const auto constrained = [](tune::Constrained (*problem)(const std::vector<double>& x)) {
    return [problem](const auto& searcher, std::uint64_t trials, std::uint64_t seed) {
      return tune::searched_constrained(searcher, problem, trials, seed);
    };
  };
  const double constr =
      19 * (2.0 / 3 - 7.0 / 18) - 7 * std::log(12.0 / 7) + 10.0 / 3 - std::log(1.5) + 0.9;
  return {{"zdt1", free(tune::zdt1), {1.1, 1.1}, 0.21 + 2.0 / 3},
          {"zdt2", free(tune::zdt2), {1.1, 1.1}, 0.21 + 1.0 / 3},
          {"constr", constrained(tune::constr), {1.1, 10}, constr},
          {"tnk", constrained(tune::tnk), {1.2, 1.2}, 0.655}};
}

/// What the hypervolume below the reference lacks of the best front's.
void fronts(const Report& report, const Algorithm& algorithm, std::uint64_t seeds) {
  for (const auto& problem : front_problems()) {
    std::array<std::vector<double>, kFrontsAt.size()> lacking;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto all = problem.search(algorithm.factory,
                                      report.smoke() ? kFrontsAt.front() : kFrontsAt.back(), seed);
      for (std::size_t i = 0; i < kFrontsAt.size(); ++i) {
        const auto count = std::min(kFrontsAt[i], all.size());
        const std::vector first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
        lacking[i].push_back(problem.best - tune::hypervolume(first, problem.reference));
      }
    }
    for (std::size_t i = 0; i < kFrontsAt.size(); ++i)
      report.print(fmt::format("{}/{}@{}", problem.name, algorithm.name, kFrontsAt[i]),
                   tune::median(lacking[i]), "hypervolume",
                   i + 1 == kFrontsAt.size() ? fmt::format("lacking of {:.3f}", problem.best) : "");
  }
}

/// On Hartmann-6. The median over the suggestions that follow.
void times(const Report& report, const Algorithm& algorithm) {
  const auto after =
      report.smoke() ? std::min<std::uint64_t>(algorithm.timed_after, 30) : algorithm.timed_after;
  constexpr std::uint64_t timed = 51;
  const auto& function = tune::test_functions()[1];
  const auto searcher = algorithm.factory({.space = function.space,
                                           .objective = {"loss", tune::Min},
                                           .seed = 0,
                                           .trials = after + timed});
  std::vector<double> milliseconds;
  for (tune::TrialId trial = 0; trial < after + timed; ++trial) {
    const auto start = Clock::now();
    const auto configuration = tune::suggested(*searcher, trial);
    const auto suggested = seconds_since(start);
    const double value = function.value(tune::numbers_of(configuration));
    const auto ends = Clock::now();
    tune::end_with(*searcher, trial, value);
    if (trial >= after) milliseconds.push_back(1e3 * (suggested + seconds_since(ends)));
  }
  report.print(fmt::format("suggestion/{}@{}", algorithm.name, algorithm.timed_after),
               tune::median(milliseconds), "ms", "a suggestion and the end of its trial");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int seeds = 30;
  Arguments arguments("How near to the optimum the searchers come, and how long they take.");
  arguments.flag("--json", options.json, "a JSON line for each figure");
  arguments.flag("--smoke", options.smoke, "one search each: shows that it runs, not how well");
  arguments.option("--seeds", seeds, "searches of each algorithm on each function");
  arguments.option(
      "--only", options.only,
      "algorithms whose name matches one of these shell patterns, separated by commas");
  arguments.parse(argc, argv);
  const Report report(options);
  for (const auto& algorithm : algorithms()) {
    if (!report.wants(algorithm.name)) continue;
    const auto searches = options.smoke ? 1 : static_cast<std::uint64_t>(std::max(1, seeds));
    regrets(report, algorithm, searches);
    if (algorithm.finds_fronts) fronts(report, algorithm, searches);
    times(report, algorithm);
  }
  if (const auto names = report.unmatched(); !names.empty()) {
    std::cerr << fmt::format("searchers_bench: no algorithm matches --only '{}'\n", options.only);
    return 2;
  }
}
