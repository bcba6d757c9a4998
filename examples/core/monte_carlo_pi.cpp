// Estimates pi: tasks throw random points at a square and count those that fall into the quarter of
// a circle in it. Every task tells an actor how far it is, and the driver asks that actor.
//
//   monte_carlo_pi [--address HOST:PORT]
//
// How far the tasks are is shown on standard error. It prints:
//
//   32000000 points were thrown by 16 tasks
//   pi is about 3.142
#include <chrono>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

constexpr int kTasks = 16;
constexpr std::int64_t kPortions = 20;     // after each of which a task says how far it is
constexpr std::int64_t kPoints = 100'000;  // of one portion

/// An actor: one object in a process of its own, whose methods run one at a time.
class Progress {
 public:
  void add(std::int64_t points) { points_ += points; }
  std::int64_t points() const { return points_; }

 private:
  std::int64_t points_ = 0;
};

/// A task: an ordinary function. The handle of the actor came with the other arguments.
std::int64_t points_inside(std::uint64_t seed, troupe::Actor<Progress> progress) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> coordinate(0.0, 1.0);
  std::int64_t inside = 0;
  for (std::int64_t portion = 0; portion < kPortions; ++portion) {
    for (std::int64_t point = 0; point < kPoints; ++point) {
      const double x = coordinate(random);
      const double y = coordinate(random);
      if (x * x + y * y < 1.0) ++inside;
    }
    progress.call<&Progress::add>(kPoints);  // Nobody waits for this call.
  }
  return inside;
}

void estimate_pi() {
  const auto progress = troupe::spawn<Progress>();  // It costs a process, and no core.
  std::vector<troupe::Ref<std::int64_t>> tasks;
  for (int seed = 0; seed < kTasks; ++seed)
    tasks.push_back(troupe::task<points_inside>(seed, progress));

  constexpr auto total = kTasks * kPortions * kPoints;
  const auto pause = std::chrono::milliseconds(100);
  while (!troupe::wait(tasks, tasks.size(), pause).unready.empty()) {
    const auto points = progress.call<&Progress::points>().get();
    std::cerr << points * 100 / total << " % of the points\n";
  }

  const auto counts = troupe::get(tasks);
  const auto inside = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::cout << total << " points were thrown by " << kTasks << " tasks\n"
            << "pi is about " << 4.0 * static_cast<double>(inside) / total << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    estimate_pi();
  } catch (const std::exception& error) {
    std::cerr << "monte_carlo_pi: " << error.what() << '\n';
    return 1;
  }
}
