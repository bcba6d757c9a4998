#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>

#include <catch2/catch.hpp>

#include "support/taskset.hpp"

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
