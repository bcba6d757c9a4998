#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/simulate.hpp>

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr std::int64_t kSteps = 50;
/// Of a configuration, its loss after 1 .. kSteps steps.
using Curves = std::vector<std::vector<double>>;

Curves parsed(std::istream& csv) {
  Curves curves;
  std::string line, field;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    std::vector<double> losses;
    std::istringstream fields(line);
    constexpr int before_the_losses = 9;  // eight hyperparameters, and the loss before training
    for (int index = 0; std::getline(fields, field, ','); ++index) {
      if (index >= before_the_losses) losses.push_back(std::stod(field));
    }
    REQUIRE(losses.size() == kSteps);
    curves.push_back(std::move(losses));
  }
  return curves;
}

/// Empty if the data set is not there.
Curves curves_of(const std::string& task) {
  const auto path = std::filesystem::path(TROUPE_DATA_DIR) / "taskset" / (task + ".csv.gz");
  if (!std::filesystem::exists(path)) return {};
  std::string text;
  FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  REQUIRE(pipe);
  std::array<char, 65536> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), size);
  REQUIRE(pclose(pipe) == 0);
  std::istringstream csv(text);
  return parsed(csv);
}

double lowest(const std::vector<double>& losses) {
  double best = std::numeric_limits<double>::infinity();
  for (double loss : losses) best = loss < best ? loss : best;  // false for nan
  return best;
}

/// Hands out the configurations of the table in a random order, each once.
class TableSearcher final : public Searcher {
 public:
  TableSearcher(std::size_t size, std::uint64_t seed) : order_(size) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    Random random(seed);
    for (auto left = size; left > 1; --left)
      std::swap(order_[left - 1], order_[random.below(left)]);
  }
  Suggestion suggest(TrialId trial) override {
    if (trial >= order_.size()) return NoMore{};
    return Configuration{{"row", order_[trial]}};
  }
  std::string save() const override { return "{}"; }
  void load(std::string_view) override {}

 private:
  std::vector<std::int64_t> order_;
};

struct Row {
  std::int64_t row = 0;
};

double regret(const Curves& curves, double best, const SchedulerFactory& scheduler,
              std::uint64_t seed, std::size_t workers, std::chrono::seconds time) {
  const tune::Options<Row> options{.space = {{"row", integer(0, 999)}},
                                   .trials = curves.size(),
                                   .metric = "loss",
                                   .mode = Min,
                                   .scheduler = scheduler,
                                   .seed = seed,
                                   .searcher =
                                       [&](const SearchSetup& setup) {
                                         return std::make_unique<TableSearcher>(curves.size(),
                                                                                setup.seed);
                                       },
                                   .time_budget = time + std::chrono::milliseconds(500)};
  const auto preview = simulate<Row>(
      options,
      {.curve =
           [&](const Row& row, std::int64_t t) {
             return curves[static_cast<std::size_t>(row.row)][static_cast<std::size_t>(t - 1)];
           },
       .reports = kSteps,
       .gangs = workers});
  return preview.results.best().value() - best;
}

double mean_regret(const Curves& curves, const SchedulerFactory& scheduler, std::size_t workers,
                   std::chrono::seconds time) {
  std::vector<double> bests;
  for (const auto& losses : curves) bests.push_back(lowest(losses));
  const auto best = *std::ranges::min_element(bests);
  constexpr int seeds = 40;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    sum += regret(curves, best, scheduler, seed, workers, time);
  return sum / seeds;
}

}  // namespace

// The figures are means over 100 seeds of another simulation of the same rule on the same tables,
// with other orders of the configurations: they differ by chance, within a third.
TEST_CASE("ASHA comes as near to the best real learning curve as the reference simulation",
          "[tune][asha][data]") {
  struct Figure {
    const char* task;
    double random, stop_3, stop_4, promotion_3, promotion_4;
  };
  const auto figure = GENERATE(Figure{"patch32_GRU64_avg_bs128", .1015, .0205, .0176, .0178, .0148},
                               Figure{"patch32_LSTM128_bs128", .0313, .0030, .0025, .0029, .0025});
  CAPTURE(figure.task);
  const auto curves = curves_of(figure.task);
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
