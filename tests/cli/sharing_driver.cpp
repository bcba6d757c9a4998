// A job that always wants more. Prints a line for each piece of work that is done, with the time of
// the steady clock, which all processes of a machine share, in milliseconds.
//
//   test_sharing_driver stream FILE     until there is this file: tasks of one CPU and 20 ms, of which 16 are under way
//   test_sharing_driver sweep TRIALS    so many of 100 ms in gangs of two CPUs, one after the other
#include <chrono>
#include <deque>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>

#include <troupe/troupe.hpp>
#include "guard.hpp"

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

int piece() {
  std::this_thread::sleep_for(20ms);
  return 0;
}

class Rank {
 public:
  int trial() {
    std::this_thread::sleep_for(100ms);
    return 0;
  }
};

void say_done() {
  std::cout << "done "
            << std::chrono::duration_cast<std::chrono::milliseconds>(
                   Clock::now().time_since_epoch())
                   .count()
            << std::endl;
}

void stream(const std::string& file) {
  std::deque<troupe::Ref<int>> under_way;
  while (!std::filesystem::exists(file)) {
    while (under_way.size() < 16) under_way.push_back(troupe::task<piece>());
    under_way.front().get(troupe::test::kGuard);
    under_way.pop_front();
    say_done();
  }
}

void sweep(int trials) {
  for (int done = 0; done < trials; ++done) {
    const auto gang = troupe::gang<Rank>({.size = 2});
    for (auto& trial : gang.all<&Rank::trial>()) trial.get(troupe::test::kGuard);
    say_done();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const std::string what = argc > 2 ? argv[1] : "";
  if (what == "stream") {
    stream(argv[2]);
  } else if (what == "sweep") {
    sweep(std::stoi(argv[2]));
  } else {
    std::cerr << "usage: " << argv[0] << " stream FILE|sweep TRIALS\n";
    return 2;
  }
}
