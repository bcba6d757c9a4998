// What calls, tasks, values and actors cost in a private cluster on this machine: one row a case, or with --json one line
// {"name", "value", "unit"} a case. Each case runs for --seconds after one warm-up round.
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <troupe/troupe.hpp>

namespace {

using Clock = std::chrono::steady_clock;

int small(int x) { return x; }

struct Counter {
  int n = 0;
  int add(int x) { return n += x; }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Bench {
  double seconds = 1;
  bool as_json = false;

  void print(const std::string& name, double value, const std::string& unit) const {
    if (as_json) {
      std::cout << nlohmann::json{{"name", name}, {"value", value}, {"unit", unit}} << std::endl;
    } else {
      std::cout << fmt::format("{:<24} {:>14.1f} {}", name, value, unit) << std::endl;
    }
  }

  /// `round` does `operations`; it is repeated until the time is over.
  void per_second(const std::string& name, int operations, const std::function<void()>& round) const {
    round();
    const auto start = Clock::now();
    int rounds = 0;
    while (rounds == 0 || seconds_since(start) < seconds) {
      round();
      ++rounds;
    }
    print(name, rounds * operations / seconds_since(start), "1/s");
  }

  /// One operation at a time: the rate, and percentiles of its latency.
  void one_at_a_time(const std::string& name, const std::function<void()>& operation) const {
    std::vector<double> micros;
    operation();
    const auto start = Clock::now();
    while (micros.empty() || seconds_since(start) < seconds) {
      const auto before = Clock::now();
      operation();
      micros.push_back(seconds_since(before) * 1e6);
    }
    print(name, static_cast<double>(micros.size()) / seconds_since(start), "1/s");
    std::ranges::sort(micros);
    const auto at = [&](double share) {
      return micros[static_cast<std::size_t>(share * static_cast<double>(micros.size() - 1))];
    };
    print(name + "_p50_us", at(0.5), "us");
    print(name + "_p99_us", at(0.99), "us");
    print(name + "_p999_us", at(0.999), "us");
  }
};

template <class Call>
void pipelined(int calls, Call call) {
  std::vector<troupe::Ref<int>> refs;
  refs.reserve(static_cast<std::size_t>(calls));
  for (int i = 0; i < calls; ++i) refs.push_back(call());
  for (auto& ref : refs) ref.get();
}

void start_actors(int count) {
  std::vector<troupe::Actor<Counter>> actors;
  for (int i = 0; i < count; ++i) actors.push_back(troupe::with({.cpus = 0.01}).spawn<Counter>());
  for (auto& actor : actors) actor.call<&Counter::add>(1).get();
}

}  // namespace

int main(int argc, char** argv) {
  auto cluster = troupe::init(argc, argv);
  Bench bench;
  CLI::App app{"What calls, tasks, values and actors cost in a private cluster on this machine."};
  app.add_option("--seconds", bench.seconds, "of each case")->capture_default_str();
  app.add_flag("--json", bench.as_json, "a JSON line for each case");
  CLI11_PARSE(app, argc, argv);

  constexpr int kPipelined = 2000;
  auto actor = troupe::spawn<Counter>();
  bench.one_at_a_time("actor_call_sync", [&] { actor.call<&Counter::add>(1).get(); });
  bench.per_second("actor_call_async", kPipelined,
                   [&] { pipelined(kPipelined, [&] { return actor.call<&Counter::add>(1); }); });
  bench.one_at_a_time("task_sync", [] { troupe::task<small>(1).get(); });
  bench.per_second("task_async", kPipelined, [] { pipelined(kPipelined, [] { return troupe::task<small>(1); }); });
  bench.per_second("put_small", 1000, [] {
    for (int i = 0; i < 1000; ++i) troupe::put(i);
  });
  const auto seven = troupe::put(7);
  bench.per_second("get_small", 1000, [&] {
    for (int i = 0; i < 1000; ++i) seven.get();
  });
  bench.per_second("actors_started_20", 20, [] { start_actors(20); });
}
