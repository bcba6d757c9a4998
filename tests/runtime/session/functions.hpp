#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>
#include <troupe/troupe.hpp>

#include "gate.hpp"
#include "guard.hpp"

/// What the tests run elsewhere.
namespace troupe::test {

inline int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
inline int twice(int x) { return 2 * x; }
inline int process_id() { return getpid(); }
inline std::string fails(std::string text) { throw std::out_of_range(text); }
inline int sum(const std::vector<int>& values) {
  int total = 0;
  for (int value : values) total += value;
  return total;
}
/// Each level waits for the next one: on one CPU that works only if a task that waits gives its CPU
/// back.
inline int nested(int depth) { return depth == 0 ? 0 : 1 + task<nested>(depth - 1).get(); }
inline int dies_by(int signal) {
  ::raise(signal);
  return 0;
}
inline int exits_with(int code) { std::_Exit(code); }
inline Ref<int> makes_a_ref(int x) { return put(x + 1); }
inline int reads_a_ref(Ref<int> ref) { return ref.get() + 1; }
inline int sleeps(int milliseconds) {
  usleep(static_cast<useconds_t>(milliseconds) * 1000);
  return milliseconds;
}

inline std::string visible_gpus() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible ? visible : "unset";
}

struct Counter {
  explicit Counter(int start) : n(start) {
    if (start < 0) throw std::invalid_argument("a counter starts at 0 or above");
  }
  int add(int x) { return n += x; }
  int pid() const { return getpid(); }
  std::string gpus() const { return visible_gpus(); }
  int die(int signal) { return dies_by(signal); }
  int leave(int code) { return exits_with(code); }
  int sleep(int milliseconds) { return sleeps(milliseconds); }
  int waits(const std::string& gate) { return wait_at(gate); }
  int n;
};

inline int adds_for(Actor<Counter> counter, int x) { return counter.call<&Counter::add>(x).get(); }

inline int length(const std::string& text) { return static_cast<int>(text.size()); }
/// Its own tasks: a short one, a large one, a short one, all waited for.
inline int waits_for_large(int i) {
  auto before = task<twice>(1);
  auto large = task<length>(std::string(200'000, 'x'));
  auto after = task<twice>(2);
  return before.get() + large.get() + after.get() - 6 + i;
}

/// What was said to it, in order.
struct Log {
  int add(const std::string& line) {
    said.push_back(line);
    return static_cast<int>(said.size());
  }
  int add_ref(const Ref<std::string>& line) { return add(line.get()); }
  void fail(const std::string& line) {
    add(line);
    throw std::runtime_error(line);
  }
  std::vector<std::string> lines() const { return said; }
  void clear() { said.clear(); }
  std::vector<std::string> said;
};

/// Until the counter is above zero; -1: it gave up. Each look is a task of its own.
inline int waits_for_gate(Actor<Counter> gate) {
  for (const auto end = std::chrono::steady_clock::now() + kGuard;
       std::chrono::steady_clock::now() < end;) {
    if (const int count = gate.call<&Counter::add>(0).get(); count > 0) return count;
    task<sleeps>(5).get();
  }
  return -1;
}
inline int opens_gate(Actor<Counter> gate, const std::string&) {
  return gate.call<&Counter::add>(1).get();
}

struct Caller {
  explicit Caller(Actor<Counter> called) : counter(called) {}
  int add_many(int times) {
    int total = 0;
    for (int i = 0; i < times; ++i) total = counter.call<&Counter::add>(1).get();
    return total;
  }
  Actor<Counter> counter;
};

/// Calls itself.
struct Loner {
  int count() { return ++calls; }
  int waits_for_itself(Actor<Loner> self) { return self.call<&Loner::count>().get(); }
  int waits_for_itself_briefly(Actor<Loner> self) {
    return self.call<&Loner::count>().get(std::chrono::seconds(1));
  }
  Ref<int> asks_itself(Actor<Loner> self) { return self.call<&Loner::count>(); }
  /// -> how many of a call of itself and a task are there once one of them is
  int waits_for_one_of(Actor<Loner> self) {
    const auto found = wait(std::vector<Ref<int>>{self.call<&Loner::count>(), task<twice>(1)}, 1);
    return static_cast<int>(found.ready.size());
  }
  int calls = 0;
};

struct Rank {
  int rank() const { return this_gang()->rank(); }
  int throws() const { throw std::out_of_range("no such row"); }
  int size() const { return this_gang()->size(); }
  int local_rank() const { return this_gang()->local_rank(); }
  std::uint32_t node() const { return this_gang()->node(); }
  std::string host() const { return this_gang()->host(); }
  std::string gpus() const { return visible_gpus(); }
  int pid() const { return getpid(); }
  /// Waits for a key that nobody sets, as a collective would for a peer: longer than a test does.
  std::string waits_for(const std::string& key) {
    return this_gang()->rendezvous().get(key, 10 * kGuard);
  }
  std::string exchanges() {
    auto& gang = *this_gang();
    gang.rendezvous().set("from " + std::to_string(gang.rank()),
                          "hello " + std::to_string(gang.rank()));
    const int next = (gang.rank() + 1) % gang.size();
    return gang.rendezvous().get("from " + std::to_string(next), kGuard);
  }
};

}  // namespace troupe::test
