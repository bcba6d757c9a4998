// The cases of core_bench on Ray's C++ API: the same work in the same portions, the same rule for how often, the same
// lines. Its worker processes load this file as a shared library.
//
//   ray_core first LIBRARY HOST:PORT           one task; prints "result 42"
//   ray_core cases LIBRARY HOST:PORT SECONDS   the cases, each for so long; a JSON line for each figure
#include <ray/api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int small(int x) { return x; }

class Counter {
 public:
  static Counter *create() { return new Counter; }
  int add(int x) { return n_ += x; }

 private:
  int n_ = 0;
};

std::vector<ray::ObjectRef<int>> add_one(std::vector<ray::ActorHandle<Counter>> &counters, int calls) {
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 0; i < calls; ++i) refs.push_back(counters[i % counters.size()].Task(&Counter::add).Remote(1));
  return refs;
}

void get_all(std::vector<ray::ObjectRef<int>> refs) {
  for (auto &ref : refs) ref.Get();
}

std::string counter_name(int i) { return "counter-" + std::to_string(i); }

/// Calls the named counters from a process of its own.
class Caller {
 public:
  static Caller *create(int count) { return new Caller(count); }
  explicit Caller(int count) {
    for (int i = 0; i < count; ++i) counters_.push_back(*ray::GetActor<Counter>(counter_name(i)));
  }
  int drive(int calls) {
    get_all(add_one(counters_, calls));
    return calls;
  }

 private:
  std::vector<ray::ActorHandle<Counter>> counters_;
};

RAY_REMOTE(small, Counter::create, &Counter::add, Caller::create, &Caller::drive);

class Report {
 public:
  explicit Report(double seconds) : seconds_(seconds) {}

  void print(const std::string &name, double value, const char *unit) const {
    std::printf("{\"name\":\"%s\",\"value\":%.9g,\"unit\":\"%s\"}\n", name.c_str(), value, unit);
    std::fflush(stdout);
  }
  /// A round to warm up, then at least four, until the time is over: the mean of their rates.
  void rate(const char *name, const char *unit, double amount, const std::function<void()> &round) const {
    round();
    std::vector<double> rates;
    for (const auto start = Clock::now(); rates.size() < 4 || seconds_since(start) < seconds_;) {
      const auto before = Clock::now();
      round();
      rates.push_back(amount / seconds_since(before));
    }
    print(name, std::accumulate(rates.begin(), rates.end(), 0.0) / rates.size(), unit);
  }
  void latency(const std::string &name, int count, const std::function<void()> &operation) const {
    std::vector<double> micros;
    rate(name.c_str(), "1/s", count, [&] {
      for (int i = 0; i < count; ++i) {
        const auto before = Clock::now();
        operation();
        micros.push_back(seconds_since(before) * 1e6);
      }
    });
    micros.erase(micros.begin(), micros.begin() + count);
    std::sort(micros.begin(), micros.end());
    const auto at = [&](double share) { return micros[static_cast<std::size_t>(share * (micros.size() - 1))]; };
    print(name + "_p50_us", at(0.5), "us");
    print(name + "_p99_us", at(0.99), "us");
    print(name + "_p999_us", at(0.999), "us");
  }

 private:
  double seconds_;
};

void calls(const Report &report) {
  std::vector<ray::ActorHandle<Counter>> counter{ray::Actor(Counter::create).Remote()};
  report.latency("actor_call_sync", 500, [&] { counter[0].Task(&Counter::add).Remote(1).Get(); });
  report.rate("actor_call_async", "1/s", 2000, [&] { get_all(add_one(counter, 2000)); });
  counter[0].Kill();
}

void many_to_many(const Report &report) {
  const int n = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<ray::ActorHandle<Counter>> counters;
  for (int i = 0; i < n; ++i) counters.push_back(ray::Actor(Counter::create).SetName(counter_name(i)).Remote());
  get_all(add_one(counters, n));  // they are there, so they are found by name
  std::vector<ray::ActorHandle<Caller>> callers;
  for (int i = 0; i < n; ++i) callers.push_back(ray::Actor(Caller::create).Remote(n));
  report.rate("actor_calls_n_to_n", "1/s", 1000.0 * n, [&] {
    std::vector<ray::ObjectRef<int>> driven;
    for (auto &caller : callers) driven.push_back(caller.Task(&Caller::drive).Remote(1000));
    get_all(driven);
  });
  for (auto &caller : callers) caller.Kill();
  for (auto &counter : counters) counter.Kill();
}

void tasks(const Report &report) {
  report.latency("task_sync", 300, [] { ray::Task(small).Remote(1).Get(); });
  report.rate("task_async", "1/s", 1000, [] {
    std::vector<ray::ObjectRef<int>> refs;
    for (int i = 0; i < 1000; ++i) refs.push_back(ray::Task(small).Remote(1));
    get_all(refs);
  });
}

void values(const Report &report) {
  report.rate("put_small", "1/s", 1000, [] {
    for (int i = 0; i < 1000; ++i) ray::Put(i);
  });
  auto seven = ray::Put(7);
  report.rate("get_small", "1/s", 1000, [&] {
    for (int i = 0; i < 1000; ++i) seven.Get();
  });
  const std::string big(100 << 20, 'x');
  report.rate("put_100MiB_GBps", "GB/s", big.size() / 1e9, [&] { ray::Put(big); });
  auto ref = ray::Put(big);
  report.rate("get_100MiB_GBps", "GB/s", big.size() / 1e9, [&] { ref.Get(); });
  report.rate("get_100MiB_per_s", "1/s", 1, [&] { ref.Get(); });
}

/// Once: it takes seconds.
void actors(const Report &report) {
  const auto start = Clock::now();
  std::vector<ray::ActorHandle<Counter>> actors;
  for (int i = 0; i < 20; ++i) actors.push_back(ray::Actor(Counter::create).SetResources({{"CPU", 0.01}}).Remote());
  get_all(add_one(actors, 20));
  report.print("actors_started_20", 20 / seconds_since(start), "1/s");
  for (auto &actor : actors) actor.Kill();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const std::string what = argv[1];
  ray::RayConfig config;
  config.code_search_path = {argv[2]};
  config.address = argv[3];
  ray::Init(config);
  if (what == "first") {
    std::printf("result %d\n", *ray::Task(small).Remote(42).Get());
    std::fflush(stdout);
  } else {
    const Report report(argc > 4 ? std::atof(argv[4]) : 1);
    calls(report);
    many_to_many(report);
    tasks(report);
    values(report);
    actors(report);
  }
  ray::Shutdown();
}
