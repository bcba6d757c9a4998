#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "built.hpp"
#include "support/taskset.hpp"

namespace taskset_test {

using namespace troupe;
using namespace troupe::tune;
using namespace troupe::tune::taskset;

namespace {

double mean_regret(const Curves& curves, const SchedulerFactory& scheduler, std::size_t workers,
                   std::chrono::seconds time) {
  const auto best = lowest_of_all(curves);
  constexpr int seeds = 40;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    sum += search(curves, best, scheduler, seed, workers, time).regret();
  return sum / seeds;
}

std::filesystem::path data() { return std::filesystem::path(TROUPE_DATA_DIR) / "taskset"; }

std::vector<double> regrets(const Curves& curves, const std::string& algorithm, int eta,
                            std::size_t workers, int time, std::uint64_t seeds) {
  const auto best = lowest_of_all(curves);
  std::vector<double> found;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    found.push_back(search(curves, best, scheduler_of(algorithm, eta), seed, workers,
                           std::chrono::seconds(time))
                        .regret());
  }
  return found;
}

/// By how much the promoted searches' regrets are lower than the stopped ones', seed by seed.
Mean advantage(const std::vector<double>& promoted, const std::vector<double>& stopped) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < promoted.size(); ++i) differences.push_back(stopped[i] - promoted[i]);
  return mean_of(differences);
}

/// Of curves that fall to a floor each at a rate of its own: the low floors are rare, and some of
/// their curves begin as slowly as the bad ones, so that who is judged early is judged wrongly.
Curves made_up_curves() {
  Curves curves;
  for (std::uint64_t row = 0; row < 1000; ++row) {
    Random random(1, row, "curve");
    const double floor = random.unit() * random.unit(), height = 1 + random.unit();
    const double rate = std::pow(10, -1.5 + 1.5 * random.unit());
    std::vector<double> losses;
    for (std::int64_t t = 1; t <= kSteps; ++t) {
      const double noise = 0.02 * (random.unit() - 0.5);
      losses.push_back(floor + height * std::exp(-rate * static_cast<double>(t)) + noise);
    }
    curves.push_back(std::move(losses));
  }
  return curves;
}

/// Mean seconds to a regret, with 1, 4, 16 and 25 workers, each to be at least `part` of so many
/// times as fast as with one.
void check_speedup(const Curves& curves, double goal, bool promote, double part) {
  constexpr std::uint64_t seeds = 40;
  const auto best = lowest_of_all(curves);
  double alone = 0;
  for (const std::size_t workers : {1, 4, 16, 25}) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto found = search(curves, best, scheduler_of(promote ? "prom" : "stop", 4), seed,
                                workers, std::chrono::seconds(20'000));
      const auto time = time_to(goal, found);
      REQUIRE(time);
      sum += *time;
    }
    if (workers == 1) alone = sum;
    CAPTURE(promote, workers, sum / seeds, alone / sum);
    CHECK(alone / sum >= part * static_cast<double>(workers));
  }
}

}  // namespace

// The figures are means over 100 seeds of another simulation of the same rule on the same tables,
// with other orders of the configurations: they differ by chance, within a third.
TEST_CASE("ASHA comes as near to the best real learning curve as the reference simulation",
          "[tune][asha][data][quality]") {
  struct Figure {
    const char* task;
    double random, stop_3, stop_4, promotion_3, promotion_4;
  };
  const auto figure = GENERATE(Figure{"patch32_GRU64_avg_bs128", .1015, .0205, .0176, .0178, .0148},
                               Figure{"patch32_LSTM128_bs128", .0313, .0030, .0025, .0029, .0025});
  CAPTURE(figure.task);
  const auto curves = curves_of(std::filesystem::path(TROUPE_DATA_DIR) / "taskset", figure.task);
  if (curves.empty()) {
    std::cout << "skipped: no " << figure.task << " in '" << TROUPE_DATA_DIR
              << "' (CMake's TROUPE_DATA_DIR)\n";
    return;
  }
  REQUIRE(curves.size() == 1000);
  constexpr std::size_t workers = 25;
  constexpr std::chrono::seconds time{100};

  CHECK(mean_regret(curves, fifo(), workers, time) == Approx(figure.random).epsilon(0.33));
  CHECK(mean_regret(curves, asha({.max_t = kSteps, .eta = 3}), workers, time) ==
        Approx(figure.stop_3).epsilon(0.33));
  CHECK(mean_regret(curves, asha({.max_t = kSteps, .eta = 4}), workers, time) ==
        Approx(figure.stop_4).epsilon(0.33));
  CHECK(mean_regret(curves, asha({.max_t = kSteps, .eta = 3, .promote = true}), workers, time) ==
        Approx(figure.promotion_3).epsilon(0.33));
  CHECK(mean_regret(curves, asha({.max_t = kSteps, .eta = 4, .promote = true}), workers, time) ==
        Approx(figure.promotion_4).epsilon(0.33));
}

TEST_CASE(
    "on each of eight tables of real learning curves ASHA's regret is at or below the reference",
    "[tune][asha][data][quality]") {
  const auto rows = references(data() / "reference.csv");
  if (rows.empty()) {
    std::cout << "skipped: no reference.csv in '" << data().string()
              << "' (CMake's TROUPE_DATA_DIR)\n";
    return;
  }
  constexpr std::uint64_t seeds = 100;  // as many as the reference's
  std::map<std::string, Curves> tables;
  std::map<std::tuple<std::string, int, std::size_t>, std::vector<double>> promoted, stopped;
  for (const auto& row : rows) {
    auto& curves = tables[row.task];
    if (curves.empty()) curves = curves_of(data(), row.task);
    auto found = regrets(curves, row.algorithm, row.eta, row.workers, row.time, seeds);
    const auto mean = mean_of(found);
    CAPTURE(row.task, row.workers, row.algorithm, row.eta, mean.value, mean.error, row.mean);
    CHECK(is_met(mean, row));
    if (row.algorithm == "random") continue;
    (row.algorithm == "prom" ? promoted : stopped)[{row.task, row.eta, row.workers}] =
        std::move(found);
  }
  CHECK(tables.size() == 8);
  for (const auto& [place, found] : promoted) {
    const auto better = advantage(found, stopped.at(place));
    const auto& [task, eta, workers] = place;
    CAPTURE(task, eta, workers, better.value, better.error);
    CHECK(better.value > -2 * better.error);
  }
}

TEST_CASE("a real learning curve is found nearly as many times sooner as there are workers",
          "[tune][asha][data][quality]") {
  const bool promote = GENERATE(false, true);
  const auto curves = curves_of(data(), "patch128_LSTM128_bs64");
  if (curves.empty()) {
    std::cout << "skipped: no patch128_LSTM128_bs64 in '" << data().string()
              << "' (CMake's TROUPE_DATA_DIR)\n";
    return;
  }
  check_speedup(curves, 0.062, promote, 0.6);
}

TEST_CASE(
    "on made-up curves promotion finds better ones than stopping, and that than all at length",
    "[tune][asha][quality]") {
  const auto curves = made_up_curves();
  constexpr std::uint64_t seeds = 100;
  const auto regrets_of = [&](const std::string& algorithm) {
    return regrets(curves, algorithm, 4, 25, 100, seeds);
  };
  const auto promoted = regrets_of("prom"), stopped = regrets_of("stop");
  const auto better = advantage(promoted, stopped);
  CAPTURE(mean_of(promoted).value, mean_of(stopped).value, better.value, better.error);
  CHECK(better.value > 2 * better.error);
  CHECK(mean_of(stopped).value < 0.5 * mean_of(regrets_of("random")).value);
}

TEST_CASE("a good made-up curve is found nearly as many times sooner as there are workers",
          "[tune][asha][quality]") {
  check_speedup(made_up_curves(), 0.02, GENERATE(false, true), 0.5);
}

}  // namespace taskset_test
