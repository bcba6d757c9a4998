#include "progress/step_counter.hpp"

#include <chrono>

#include "support/catch.hpp"

namespace step_counter_test {

using namespace troupe::train;
using namespace std::chrono_literals;
using Time = StepCounter::Time;

Time at(double seconds) {
  return Time(std::chrono::round<Time::duration>(std::chrono::duration<double>(seconds)));
}
troupe::train::detail::LoaderPass pass(std::uint64_t id, int epoch, double began) {
  return {.id = id, .epoch = epoch, .began = at(began)};
}

TEST_CASE("the batches of an epoch's first loader are its steps, and validation is a gap",
          "[train][progress]") {
  StepCounter counter(2);
  counter.on_epoch(0, 3, at(0));
  const auto training = pass(1, 0, 1);
  const auto validation = pass(2, 0, 8);
  CHECK(counter.on_batch(training, 1, 2, 4, at(5)));  // the first step of all is not timed
  CHECK(counter.on_batch(training, 2, 2, 3, at(7)));
  CHECK_FALSE(counter.on_batch(validation, 1, 9, 4, at(9)));
  CHECK(counter.progress().done == 2);
  CHECK(counter.progress().total == 2);
  counter.on_epoch(1, 3, at(11));
  CHECK(counter.progress().done == 0);
  CHECK(counter.progress().total == 2);
  CHECK(counter.progress().gaps == 0);
  CHECK(counter.on_batch(pass(3, 1, 12), 1, 2, 4, at(13)));

  const auto& now = counter.progress();
  CHECK(now.epoch == 2);
  CHECK(now.epochs == 3);
  CHECK(now.ended_epochs == 1);
  CHECK(now.done == 1);
  CHECK(now.unit == "steps");
  CHECK(now.timed_steps == 2);
  CHECK(now.timed_rows == 2 * (3 + 4));
  CHECK(now.steps_s == Approx(2 + 1));
  CHECK(now.gaps == 1);
  CHECK(now.gaps_s == Approx(12 - 7));
  CHECK(now.timed_epochs == 1);
  CHECK(now.epochs_s == Approx(11));
}

TEST_CASE("when the last epoch has ended, all of them have", "[train][progress]") {
  StepCounter counter(1);
  counter.on_epoch(6, 8, at(0));
  CHECK(counter.progress().ended_epochs == 6);  // an earlier run's
  CHECK(counter.progress().timed_epochs == 0);
  counter.on_epoch(7, 8, at(1));
  counter.on_epochs_ended(8, at(3));
  CHECK(counter.progress().ended_epochs == 8);
  CHECK(counter.progress().timed_epochs == 2);
  CHECK(counter.progress().epochs_s == Approx(3));
}

TEST_CASE(
    "a look at one batch of another loader leaves the count to the one that is worked through",
    "[train][progress]") {
  StepCounter counter(1);
  counter.on_epoch(0, 1, at(0));
  // Pass 1 came to no batch's end.
  CHECK(counter.on_batch(pass(2, 0, 1), 1, 5, 4, at(2)));
  CHECK(counter.progress().total == 5);
}

TEST_CASE("without epochs() the loaders say which epoch it is", "[train][progress]") {
  StepCounter counter(1);
  CHECK(counter.on_batch(pass(1, 4, 0), 1, 1, 4, at(1)));
  CHECK(counter.progress().epoch == 5);
  CHECK_FALSE(counter.on_batch(pass(2, 0, 2), 1, 1, 4, at(3)));  // validation
  CHECK(counter.on_batch(pass(3, 5, 3), 1, 1, 4, at(4)));
  CHECK(counter.progress().epoch == 6);
  CHECK(counter.progress().epochs == 0);
  CHECK(counter.progress().gaps_s == Approx(2));
}

TEST_CASE("steps that the function tells of count from where it begins", "[train][progress]") {
  StepCounter counter(2);
  counter.on_steps(500, 1000, "games", at(10));
  CHECK(counter.progress().timed_steps == 0);
  counter.on_steps(510, 1000, "games", at(20));  // the first one's time is not that of the others
  CHECK(counter.progress().timed_steps == 0);
  counter.on_steps(530, 1000, "games", at(30));
  CHECK(counter.progress().timed_steps == 20);
  CHECK(counter.progress().steps_s == Approx(10));
  CHECK(counter.progress().done == 530);
  CHECK(counter.progress().unit == "games");
  CHECK(counter.progress().timed_rows == 0);
  CHECK_FALSE(counter.on_batch(pass(1, 0, 30), 1, 9, 4, at(31)));

  counter.on_steps(0, 1000, "games", at(35));  // once more from the beginning
  counter.on_steps(5, 1000, "games", at(36));
  CHECK(counter.progress().timed_steps == 25);
  CHECK(counter.progress().gaps == 1);
  CHECK(counter.progress().gaps_s == Approx(5));
}

}  // namespace step_counter_test
