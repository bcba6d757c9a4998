// A pipeline of three stages: tasks measure, an actor smooths what they have measured, and tasks
// check that and tell another actor, whose handle they were given. The driver only passes refs on:
// it waits for no stage, no value goes through it, and all stages work at the same time.
//
//   pipeline [--address HOST:PORT]
//
// It prints:
//
//   8 parts were checked; too high were
//     part 0: 0.95
//     part 1: 0.93
//     part 4: 0.93
//     part 7: 0.95
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <map>
#include <random>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using Samples = std::vector<double>;

constexpr int kParts = 8;
constexpr int kSamples = 200;  // of one part
constexpr double kTooHigh = 0.9;

/// The first stage is a task: parts do not depend on each other, so several run at once.
Samples measure(int part) {
  std::mt19937 random(static_cast<unsigned>(part));
  std::normal_distribution<double> noise(0.0, 0.5);
  Samples samples;
  for (int at = part * kSamples; at < (part + 1) * kSamples; ++at)
    samples.push_back(std::sin(0.01 * at) + noise(random));
  return samples;
}

/// The second stage is an actor, since it goes on where the last part ended. The calls of one
/// caller run in the order in which they were made, whichever of their arguments is there first.
class Smoother {
 public:
  Samples smooth(Samples samples) {
    for (auto& sample : samples) sample = level_ += 0.02 * (sample - level_);
    return samples;
  }

 private:
  double level_ = 0;
};

class Alarms {
 public:
  void raise(int part, double level) { levels_[part] = level; }
  std::map<int, double> levels() const { return levels_; }

 private:
  std::map<int, double> levels_;
};

/// The third stage. A handle of an actor is an argument like any other.
void check(int part, const Samples& samples, troupe::Actor<Alarms> alarms) {
  const double highest = std::ranges::max(samples);
  if (highest > kTooHigh) alarms.call<&Alarms::raise>(part, highest).get();
}

void run_pipeline() {
  const auto smoother = troupe::spawn<Smoother>();
  const auto alarms = troupe::spawn<Alarms>();

  std::vector<troupe::Ref<void>> checks;
  for (int part = 0; part < kParts; ++part) {
    const troupe::Ref<Samples> measured = troupe::task<measure>(part);
    const troupe::Ref<Samples> smoothed = smoother.call<&Smoother::smooth>(measured);
    checks.push_back(troupe::task<check>(part, smoothed, alarms));
  }
  troupe::get(checks);  // Throws what the first stage that failed threw.

  std::cout << checks.size() << " parts were checked; too high were\n" << std::setprecision(2);
  for (const auto& [part, level] : alarms.call<&Alarms::levels>().get())
    std::cout << "  part " << part << ": " << level << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    run_pipeline();
  } catch (const std::exception& error) {
    std::cerr << "pipeline: " << error.what() << '\n';
    return 1;
  }
}
