// The loss scale of float16, step by step. What it does is DeepSpeed's rule, written out.
#include "precision/loss_scaler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

using namespace troupe::train;

namespace {

/// The scales of a run in which the steps named were ones with an overflow.
std::vector<double> scales(LossScaleOptions options, int steps, const std::vector<int>& overflows) {
  LossScaler scaler(options);
  std::vector<double> found;
  for (int step = 0; step < steps; ++step) {
    found.push_back(scaler.scaled());
    scaler.stepped(std::find(overflows.begin(), overflows.end(), step) == overflows.end());
  }
  found.push_back(scaler.scaled());
  return found;
}

}  // namespace

TEST_CASE("the loss scale doubles after a window without an overflow", "[train][precision]") {
  // The first window begins one step before the first one, as DeepSpeed's does.
  CHECK(scales({.initial = 4, .window = 3}, 9, {}) ==
        std::vector<double>{4, 4, 4, 8, 8, 8, 16, 16, 16, 32});
  CHECK(scales({.initial = 4, .window = 3, .hysteresis = 1}, 7, {1}) ==
        std::vector<double>{4, 4, 2, 2, 2, 4, 4, 4});
}

TEST_CASE("the loss scale is halved once patience has ended", "[train][precision]") {
  CHECK(scales({.initial = 64, .window = 100}, 4, {0, 1, 2}) ==
        std::vector<double>{64, 64, 32, 16, 16});
  // Patience comes back with a doubling ...
  CHECK(scales({.initial = 64, .window = 2}, 6, {0, 3}) ==
        std::vector<double>{64, 64, 64, 128, 128, 128, 256});
  // ... or with each step that has no overflow.
  const std::vector<int> now_and_then{0, 2, 4, 5};
  CHECK(scales({.initial = 64, .window = 100}, 6, now_and_then) ==
        std::vector<double>{64, 64, 64, 32, 32, 16, 8});
  CHECK(scales({.initial = 64, .window = 100, .consecutive_hysteresis = true}, 6, now_and_then) ==
        std::vector<double>{64, 64, 64, 64, 64, 64, 32});
}

TEST_CASE("a loss scale that is the smallest and too large ends the run", "[train][precision]") {
  LossScaler scaler({.initial = 2, .hysteresis = 1, .smallest = 1});
  scaler.scaled();
  scaler.stepped(false);
  CHECK(scaler.scaled() == 1);
  scaler.stepped(false);
  CHECK_THROWS_WITH(scaler.scaled(),
                    Catch::Contains("not finite although the loss scale is the smallest, 1"));
  CHECK(scaler.skipped() == 2);
}

TEST_CASE("a fixed loss scale stays, and one that grows stays finite", "[train][precision]") {
  CHECK(scales({.window = 1, .fixed = 128}, 3, {0, 1}) == std::vector<double>{128, 128, 128, 128});
  LossScaler fixed({.fixed = 8});
  const auto overflow = [&] {
    fixed.scaled();
    fixed.stepped(false);
  };
  for (int step = 0; step < 99; ++step) overflow();
  fixed.scaled();
  fixed.stepped(true);
  for (int step = 0; step < 100; ++step) overflow();
  CHECK_THROWS_WITH(fixed.scaled(), Catch::Contains("is fixed at 8, in 100 steps in a row"));
  const double largest = std::ldexp(1.0, 126);
  CHECK(scales({.initial = largest, .window = 1}, 2, {}) ==
        std::vector<double>{largest, largest, largest});
}

TEST_CASE("a loss scale is the same until all optimizers have stepped (1, 2)",
          "[train][precision]") {
  LossScaler scaler({.initial = 8, .window = 1, .hysteresis = 1});
  CHECK(scaler.scaled() == 8);
  CHECK(scaler.scaled() == 8);  // a second batch of the same step
  scaler.stepped(true);
  CHECK(scaler.scale() == 8);
  scaler.stepped(false);  // another optimizer's gradients
  CHECK(scaler.scale() == 8);
  CHECK(scaler.scaled() == 4);
  scaler.stepped(true);
  scaler.stepped(true);
  CHECK(scaler.scaled() == 8);
  CHECK(scaler.skipped() == 1);
  CHECK(scaler.losses() == 4);
}

TEST_CASE("a loss scale goes on from its state as it would have", "[train][precision]") {
  const LossScaleOptions options{.initial = 64, .window = 3};
  for (int until = 0; until < 12; ++until) {
    CAPTURE(until);
    LossScaler whole(options), first(options), second(options);
    for (int step = 0; step < 12; ++step) {
      if (step == until) second.restore(first.state());
      auto& other = step < until ? first : second;
      REQUIRE(other.scaled() == whole.scaled());
      for (auto* each : {&whole, &other}) each->stepped(step % 5 != 1 && step % 5 != 2);
    }
  }
}

TEST_CASE("a loss scale goes on as far as the options let it", "[train][precision]") {
  const LossScaleState state{.scale = 4096, .steps = 9, .last_overflow = 2, .patience = 1};
  LossScaler fixed({.fixed = 128});
  fixed.restore(state);
  CHECK(fixed.scaled() == 128);
  LossScaler raised({.initial = 65536, .smallest = 8192});
  raised.restore(state);
  CHECK(raised.scaled() == 8192);
}

TEST_CASE("options of a loss scale that cannot be are refused by name", "[train][precision]") {
  const auto refused = [](LossScaleOptions options, const char* why) {
    CHECK_THROWS_AS(LossScaler(options), std::invalid_argument);
    CHECK_THROWS_WITH(LossScaler(options), Catch::Contains(why));
  };
  refused({.initial = 0}, "loss_scale.initial is 0; it is a number from 2^-126 to 2^126");
  refused({.initial = 1e-40, .smallest = 1e-40}, "loss_scale.initial is 1e-40");
  refused({.initial = std::numeric_limits<double>::infinity()}, "loss_scale.initial is inf");
  refused({.fixed = 1e300}, "loss_scale.fixed is 1e+300");
  refused({.window = 0}, "loss_scale.window is 0; it is at least 1");
  refused({.hysteresis = 0}, "loss_scale.hysteresis is 0; it is at least 1");
  refused({.smallest = -1}, "loss_scale.smallest is -1");
  refused({.initial = 4, .smallest = 8},
          "loss_scale.smallest is 8; it is a number of at least 2^-126, and at most");
  refused({.fixed = -2}, "loss_scale.fixed is -2");
}
