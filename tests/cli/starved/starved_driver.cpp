// What a driver does all the time, for some seconds: tasks, calls of an actor, gangs whose ranks
// meet, and lines. No task or gang has a second try, so that whatever is lost shows. Ends with
//
//   all is well: TASKS tasks, CALLS calls, GANGS gangs, LINES lines
//
//   test_starved_driver SECONDS
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <troupe/troupe.hpp>

#include "guard.hpp"

namespace {

using troupe::test::kGuard;
using Clock = std::chrono::steady_clock;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

int twice(int value) { return 2 * value; }

/// Whole lines, from whichever process runs it.
int says(int line) {
  std::cout << "line " << line << " of " << getpid() << std::endl;
  return line;
}

class Counter {
 public:
  int add(int value) { return sum_ += value; }

 private:
  int sum_ = 0;
};

class Rank {
 public:
  /// What the rank before it has handed over.
  int meet(int round) {
    auto& gang = *troupe::this_gang();
    const auto key = [&](int rank) { return std::to_string(round) + "/" + std::to_string(rank); };
    gang.rendezvous().set(key(gang.rank()), std::to_string(gang.rank()));
    const int before = (gang.rank() + gang.size() - 1) % gang.size();
    return std::stoi(gang.rendezvous().get(key(before), kGuard));
  }
};

struct Done {
  int tasks = 0, calls = 0, gangs = 0, lines = 0;
};

void run_tasks(Done& done) {
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < 100; ++i) refs.push_back(troupe::with({.retries = 0}).task<twice>(i));
  const auto values = troupe::get(refs, kGuard);
  for (int i = 0; i < 100; ++i)
    expect(values[static_cast<std::size_t>(i)] == 2 * i, "a task has a wrong result");
  done.tasks += 100;
}

void call(const troupe::Actor<Counter>& counter, Done& done) {
  for (int i = 0; i < 20; ++i)
    expect(counter.call<&Counter::add>(1).get(kGuard) == ++done.calls, "a call was lost, or twice");
}

void meet(const troupe::Gang<Rank>& gang, int round) {
  const auto values = troupe::get(gang.all<&Rank::meet>(round), kGuard);
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    expect(values[rank] == static_cast<int>((rank + values.size() - 1) % values.size()),
           "a rank was handed over something else");
}

}  // namespace

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const auto end = Clock::now() + std::chrono::seconds(argc > 1 ? std::stoi(argv[1]) : 1);
  Done done;
  const auto counter = troupe::spawn<Counter>();
  const auto lasting = troupe::gang<Rank>({.size = 2});
  do {  // once at least: a cluster that stands still takes seconds for what is above
    run_tasks(done);
    call(counter, done);
    meet(lasting, done.gangs);
    meet(troupe::gang<Rank>({.size = 2}), 0);
    ++done.gangs;
    // As many as the driver's terminal takes: more are left out there, and said to be.
    if (done.gangs % 10 != 1) continue;
    expect(troupe::with({.retries = 0}).task<says>(done.lines).get(kGuard) == done.lines,
           "no line");
    ++done.lines;
  } while (Clock::now() < end);
  std::cout << "all is well: " << done.tasks << " tasks, " << done.calls << " calls, " << done.gangs
            << " gangs, " << done.lines << " lines" << std::endl;
}
