// A driver whose calls `troupe timeline` draws: does what its argument says.
#include <chrono>
#include <csignal>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <troupe/troupe.hpp>

namespace {

int leaf(int n) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return n;
}
/// Waits for tasks of its own, which run elsewhere or, as its CPU is given back, beside it.
int branch(int n) { return troupe::task<leaf>(n).get() + troupe::task<leaf>(n).get(); }

int throws() { throw std::runtime_error("as it should"); }
int dies() { return std::raise(SIGKILL); }

int forever() {
  std::cout << "forever" << std::endl;
  for (;;) ::pause();
}

struct Counter {
  int add(int n) { return sum += n; }
  int sum = 0;
};

/// Calls an actor of each node many times, through its ring where it is on this machine.
void count() {
  std::vector<troupe::Actor<Counter>> counters;
  for (int i = 0; i < 2; ++i)
    counters.push_back(troupe::with({.cpus = 1, .spread = true}).spawn<Counter>());
  for (int round = 0; round < 10; ++round) {
    std::vector<troupe::Ref<int>> sums;
    for (int i = 0; i < 20; ++i) {
      for (auto& counter : counters) sums.push_back(counter.call<&Counter::add>(1));
    }
    for (auto& sum : sums) sum.get();
  }
}

int run_all() {
  // First, while both nodes are free: a process that has run a task keeps its CPU for a moment, and
  // an actor that wants one goes to the other node then.
  count();
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < 4; ++i) refs.push_back(troupe::task<branch>(i));
  for (auto& ref : refs) ref.get();
  try {
    troupe::task<throws>().get();
  } catch (const troupe::Error&) {
  }
  try {
    troupe::with({.retries = 0}).task<dies>().get();
  } catch (const troupe::Error&) {
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto cluster = troupe::init(argc, argv);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "all") return run_all();
  if (what == "forever") return troupe::task<forever>().get();
  return 2;
}
