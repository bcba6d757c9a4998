// A search over a plain C++ function: with which gains does a controller heat a room best? The
// function simulates six hours, and reports how far the room was from what was wanted. Trials run
// in processes of their own, as many at once as the cluster has cores.
//
//   controller [--address HOST:PORT]
//
// How the trials go is shown on standard error. It prints:
//
//   the best of 60 trials has proportional 0.1, integral 0.089
//   the room is off by 1.2 degrees on average, and by 15 where nobody heats
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <iomanip>
#include <iostream>

#include <troupe/troupe.hpp>
#include <troupe/tune.hpp>

namespace tune = troupe::tune;

namespace {

/// What is searched; the search sets the fields by their names.
struct Gains {
  double proportional = 0;  // of full power, for each degree that is missing
  double integral = 0;      // of full power, for each degree and hour
};

constexpr int kSteps = 6 * 360;        // six hours
constexpr double kStep = 1.0 / 360;    // ten seconds, in hours
constexpr std::size_t kSlowness = 60;  // steps that the heat takes from the boiler to the room

/// -> by how many degrees the room was off on average.
double simulate(const Gains& gains) {
  constexpr double wanted = 20;
  constexpr double outside = 5;
  std::deque<double> on_the_way(kSlowness, 0.0);
  double room = outside;
  double integral = 0;
  double off = 0;
  for (int step = 0; step < kSteps; ++step) {
    const double missing = wanted - room;
    integral += missing * kStep;
    const double power = gains.proportional * missing + gains.integral * integral;
    on_the_way.push_back(std::clamp(power, 0.0, 1.0));
    room += kStep * (40 * on_the_way.front() - (room - outside));
    on_the_way.pop_front();
    off += std::abs(missing) / kSteps;
  }
  return off;
}

/// One trial. A function that takes many steps reports after each, so that a scheduler such as
/// tune::asha can stop it early.
void try_gains(tune::Context& context, const Gains& gains) {
  context.report({{"degrees", simulate(gains)}});
}

void search() {
  const auto results =
      tune::run<try_gains>({.space = {{"proportional", tune::loguniform(0.001, 1.0)},
                                      {"integral", tune::loguniform(0.001, 1.0)}},
                            .trials = 60,
                            .metric = "degrees",
                            .mode = tune::Min,
                            .seed = 1});
  const auto& best = results.best();
  std::cout << std::setprecision(2) << "the best of " << results.trials().size()
            << " trials has proportional " << best.config.proportional << ", integral "
            << best.config.integral << "\nthe room is off by " << best.value()
            << " degrees on average, and by " << simulate({}) << " where nobody heats\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    search();
  } catch (const std::exception& error) {
    std::cerr << "controller: " << error.what() << '\n';
    return 1;
  }
}
