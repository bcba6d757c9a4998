#include "progress/progress_estimate.hpp"

#include <cstdint>
#include <vector>

#include "support/catch.hpp"

namespace progress_estimate_test {

using troupe::TrainingProgress;
using troupe::train::ProgressEstimate;

constexpr int kSteps = 10;  // of an epoch

/// A run of epochs of ten steps, and what its rank 0 tells after each step.
struct Run {
  ProgressEstimate estimate;
  TrainingProgress now = {.total = kSteps, .unit = "steps"};
  double time = 0;

  void tell() { estimate.on(now, time); }
  void begin_epoch(std::int64_t epoch, std::int64_t epochs) {
    now.epoch = epoch;
    now.epochs = epochs;
    now.ended_epochs = epoch - 1;
    now.done = 0;
    tell();
  }
  void step(double seconds) {
    time += seconds;
    ++now.done;
    ++now.timed_steps;
    now.timed_rows += 64;
    now.steps_s += seconds;
    tell();
  }
  void steps(int count, double seconds) {
    for (int i = 0; i < count; ++i) step(seconds);
  }
  void validate(double seconds) {
    time += seconds;
    ++now.gaps;
    now.gaps_s += seconds;
  }
  double left(double later = 0) const { return estimate.seconds_left(time + later).value_or(-1); }
};

TEST_CASE("neither rate nor time left is said before two steps and a second of them",
          "[train][progress]") {
  Run slow;
  slow.begin_epoch(1, 2);
  CHECK_FALSE(slow.estimate.steps_per_s());
  slow.step(5);
  CHECK_FALSE(slow.estimate.steps_per_s());
  CHECK_FALSE(slow.estimate.seconds_left(slow.time));
  slow.step(5);
  CHECK(slow.estimate.steps_per_s().value() == Approx(0.2));
  CHECK(slow.left() == Approx(18 * 5));

  Run fast;
  fast.begin_epoch(1, 2);
  fast.steps(7, 0.125);
  CHECK_FALSE(fast.estimate.seconds_left(fast.time));
  fast.step(0.125);
  CHECK(fast.estimate.rows_per_s().value() == Approx(8 * 64));
}

TEST_CASE(
    "the rate is that of the last 30 seconds of steps, and of the last two where those took longer",
    "[train][progress]") {
  Run run;
  run.begin_epoch(1, 100);
  run.steps(9, 10);
  CHECK(run.estimate.steps_per_s().value() == Approx(0.1));
  run.now.total = 100'000;
  run.steps(400, 0.1);
  CHECK(run.estimate.steps_per_s().value() == Approx(10));
  run.steps(2, 100);
  CHECK(run.estimate.steps_per_s().value() == Approx(0.01));
  CHECK(run.estimate.mean_steps_per_s().value() == Approx(411 / (90 + 40 + 200.0)));
}

TEST_CASE("time left counts down between steps, but not below the end of the one under way",
          "[train][progress]") {
  Run run;
  run.begin_epoch(1, 1);
  run.steps(5, 4);
  CHECK(run.left() == Approx(20));
  CHECK(run.left(3) == Approx(17));
  CHECK(run.left(60) == Approx(16));
}

TEST_CASE("time left never jumps while epochs with validation follow one another",
          "[train][progress]") {
  Run run;
  const std::int64_t epochs = 5;
  std::vector<double> errors;  // of the time left, after the first epoch
  double before = -1;
  double most = 0;  // growth from one look to the next
  const double ends = epochs * (kSteps * 0.5 + 4);
  const auto look = [&](double later) {
    const auto left = run.left(later);
    if (before >= 0) most = std::max(most, left - before);
    before = left;
    if (run.now.epoch > 1) errors.push_back(std::abs(left - (ends - run.time - later)));
  };
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    run.begin_epoch(epoch, epochs);
    for (int i = 0; i < kSteps; ++i) {
      run.step(0.5);
      look(0);
    }
    for (double later = 0.2; later < 4; later += 0.2) look(later);
    run.validate(4);
  }
  // In the first validation each look 0.2 s later knows 0.2 s more of it for 4 later ones.
  CHECK(most < 1);
  for (const auto error : errors) CHECK(error < 0.6);
}

TEST_CASE("the first time between epochs is not forgotten until rank 0 has said how long it was",
          "[train][progress]") {
  Run run;
  run.begin_epoch(1, 3);
  run.steps(10, 1);
  run.time += 6;
  CHECK(run.left() == Approx(20 + 2 * 6));
  run.begin_epoch(2, 3);
  CHECK(run.left() == Approx(20 + 2 * 6));
  run.now.gaps = 1;
  run.now.gaps_s = 6;
  run.step(1);
  CHECK(run.left() == Approx(19 + 2 * 6));
}

TEST_CASE("what an earlier run has done is part of the way, but not of the rate",
          "[train][progress]") {
  Run run;
  run.begin_epoch(9, 10);
  CHECK(run.estimate.fraction().value() == Approx(0.8));
  run.steps(5, 1);
  CHECK(run.estimate.fraction().value() == Approx(0.85));
  CHECK(run.estimate.steps_per_s().value() == Approx(1));
  CHECK(run.left() == Approx(15));
}

TEST_CASE("epochs whose steps are not told of say by themselves how long the others take",
          "[train][progress]") {
  ProgressEstimate estimate;
  TrainingProgress now{.epoch = 1, .epochs = 4};
  estimate.on(now, 0);
  CHECK(estimate.fraction().value() == 0);
  CHECK_FALSE(estimate.seconds_left(3));
  now = {.epoch = 2, .epochs = 4, .ended_epochs = 1, .timed_epochs = 1, .epochs_s = 8};
  estimate.on(now, 8);
  CHECK(estimate.fraction().value() == Approx(0.25));
  CHECK(estimate.seconds_left(8).value() == Approx(24));
  CHECK(estimate.seconds_left(11).value() == Approx(21));
  CHECK(estimate.seconds_left(100).value() == Approx(16));
  now.ended_epochs = 4;
  estimate.on(now, 32);
  CHECK(estimate.fraction().value() == 1);
  CHECK_FALSE(estimate.seconds_left(32));
}

TEST_CASE("steps of an unknown total have a rate and no end", "[train][progress]") {
  ProgressEstimate estimate;
  estimate.on({.done = 30, .unit = "games", .timed_steps = 20, .steps_s = 10}, 10);
  CHECK_FALSE(estimate.fraction());
  CHECK_FALSE(estimate.seconds_left(10));
  CHECK(estimate.steps_per_s().value() == Approx(2));
  CHECK_FALSE(estimate.rows_per_s());
}

}  // namespace progress_estimate_test
