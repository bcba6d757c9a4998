// What a preview of a search prints, and what it counts.
#include <cmath>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/hyperband.hpp>
#include <troupe/tune/simulate.hpp>

namespace simulate_test {

namespace tune = troupe::tune;

namespace {

struct Config {
  double lr = 0;
};

template <class Previewed>
std::string text_of(const tune::Preview<Previewed>& preview) {
  std::ostringstream text;
  text << preview;
  return text.str();
}

/// Trial 2 is the best, from its first report on.
tune::Preview<Config> of_five(const tune::SchedulerFactory& scheduler, std::int64_t reports) {
  return tune::simulate<Config>(
      {.space = {{"lr", tune::grid({4.0, 3.0, 1.0, 2.0, 5.0})}},
       .metric = "loss",
       .scheduler = scheduler},
      {.curve = [](const Config& config, std::int64_t) { return config.lr; },
       .reports = reports,
       .gangs = 2});
}

}  // namespace

TEST_CASE("a preview prints what it is for", "[tune][simulate]") {
  std::ostringstream out;
  // [preview]
  const tune::Options<Config> options{.space = {{"lr", tune::loguniform(1e-4, 1)}},
                                      .trials = 27,
                                      .metric = "loss",
                                      .scheduler = tune::asha({.max_t = 9, .eta = 3})};
  // Of a guess: 0.01 is the best rate, and each report halves what is left to learn.
  const auto curve = [](const Config& config, std::int64_t t) {
    return std::abs(std::log10(config.lr) + 2) + std::exp2(-t);
  };
  out << tune::simulate<Config>(options, {.curve = curve, .gangs = 4});
  // [/preview]
  // docs/tune.md shows it.
  CHECK(out.str() ==
        R"(a preview: no trial has run; times are virtual, and values are those of the curves
tune: 27 trials in 24.0 s
  best: trial 22, loss 0.02695 at t=9
    lr = 0.009441
  6 terminated, 21 stopped, 0 errored
    rung 0 (t=1): 27 judged, 17 stopped: 17 above the cutoff; the cutoff is 1.011 now
    rung 1 (t=3): 10 judged, 4 stopped: 4 above the cutoff; the cutoff is 0.2901 now
  trials that reach each rung, and the end: t=1: 27, t=3: 10, t=9: 6
  83 steps in 27 launches, 243 if each trial came as far as the furthest
  the places were busy 86 % of the time
  the best value, 0.02695, was first reached by trial 22 after 24.0 s and 83 steps of all trials
)");
}

TEST_CASE("a preview says where the best value came from only if there is one",
          "[tune][simulate]") {
  const auto nothing = tune::simulate<Config>(
      {.space = {{"lr", tune::grid({1.0})}}, .metric = "loss"},
      {.curve = [](const Config&, std::int64_t) { return std::nan(""); }, .reports = 1});
  CHECK_THAT(text_of(nothing),
             Catch::EndsWith("  1 step in 1 launch\n  the places were busy 100 % of the time\n"));
}

TEST_CASE("a preview of several objectives leads with its front, and names no best value",
          "[tune][simulate]") {
  const auto preview = tune::simulate<Config>(
      {.space = {{"lr", tune::grid({1.0, 2.0})}}, .objectives = {{"loss"}, {"size"}}},
      {.curves =
           [](const Config& c, std::int64_t) {
             return std::vector{c.lr, -c.lr};
           },
       .reports = 1});
  CHECK(preview.improvements.empty());
  CHECK_THAT(text_of(preview), Catch::Contains("front") && !Catch::Contains("best"));
}

TEST_CASE("a preview whose steps take no time that can be is refused", "[tune][simulate]") {
  const double lasts = GENERATE(-1.0, std::nan(""), HUGE_VAL);
  CHECK_THROWS_WITH(
      tune::simulate<Config>({.space = {{"lr", tune::grid({1.0})}}, .metric = "loss"},
                             {.curve = [](const Config&, std::int64_t) { return 1.0; },
                              .step = [lasts](const Config&) { return tune::Seconds(lasts); }}),
      Catch::Contains("tune::simulate: .step returned ") && Catch::Contains(" s for lr=1"));
}

TEST_CASE("a preview has the notices that its run would end with", "[tune][simulate]") {
  const auto preview = of_five(tune::asha({.max_t = 27, .eta = 3, .grace = 9}), 5);
  REQUIRE(preview.notices.size() == 1);
  CHECK_THAT(preview.notices[0], Catch::StartsWith("no trial came to the first rung, at t=9"));
}

TEST_CASE("a preview counts who reaches each rung and who comes furthest", "[tune][simulate]") {
  using All = std::vector<tune::Reached>;
  const auto judged = of_five(tune::asha({.max_t = 8, .eta = 2, .grace = 2}), 100);
  CHECK(judged.reached == All{{2, 5}, {4, 4}, {8, 4}});
  CHECK(judged.steps_unstopped == 5 * 8);
  // Brackets that have the same rung are one.
  const auto brackets = of_five(tune::hyperband({.max_t = 4, .eta = 2}), 100);
  REQUIRE(brackets.reached.size() == 3);
  CHECK(brackets.reached[0] == tune::Reached{1, 5});
  // The functions return before the second rung.
  CHECK(of_five(tune::asha({.max_t = 8, .eta = 2, .grace = 2}), 3).reached == All{{2, 5}, {4, 0}});
}

TEST_CASE("a preview without rungs and without early stopping says nothing of them",
          "[tune][simulate]") {
  const auto all = of_five(tune::fifo(), 3);
  CHECK(all.reached.empty());
  CHECK_THAT(text_of(all),
             Catch::EndsWith(
                 "  15 steps in 5 launches\n"
                 "  the places were busy 83 % of the time\n"
                 "  the best value, 1, was first reached by trial 2 after 4.0 s and 7 steps of all "
                 "trials\n"));
}

}  // namespace simulate_test
