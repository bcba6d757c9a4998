// The cases of core_bench on Ray's C++ API: the same work in the same portions, the same rule for how often, the same
// lines. Its worker processes load this file as a shared library.
//
//   ray_core first LIBRARY HOST:PORT           one task; prints "result 42"
//   ray_core cases LIBRARY HOST:PORT SECONDS   the cases, each for so long; a JSON line for each figure
#include <ray/api.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
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
  static Counter* create() { return new Counter; }
  int add(int x) { return n_ += x; }

 private:
  int n_ = 0;
};

std::vector<ray::ObjectRef<int>> add_one(std::vector<ray::ActorHandle<Counter>>& counters, int calls) {
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 0; i < calls; ++i) refs.push_back(counters[i % counters.size()].Task(&Counter::add).Remote(1));
  return refs;
}

void get_all(std::vector<ray::ObjectRef<int>> refs) {
  for (auto& ref : refs) ref.Get();
}

std::string counter_name(int i) { return "counter-" + std::to_string(i); }

RAY_REMOTE(small, Counter::create, &Counter::add);

class Report {
 public:
  explicit Report(double seconds) : seconds_(seconds) {}

  void print(const std::string& name, double value, const char* unit) const {
    std::printf("{\"name\":\"%s\",\"value\":%.9g,\"unit\":\"%s\"}\n", name.c_str(), value, unit);
    std::fflush(stdout);
  }
  /// A round to warm up, then at least four, until the time is over: the mean of their rates.
  void rate(const char* name, const char* unit, double amount, const std::function<void()>& round) const {
    round();
    std::vector<double> rates;
    for (const auto start = Clock::now(); rates.size() < 4 || seconds_since(start) < seconds_;) {
      const auto before = Clock::now();
      round();
      rates.push_back(amount / seconds_since(before));
    }
    print(name, std::accumulate(rates.begin(), rates.end(), 0.0) / rates.size(), unit);
  }
  void latency(const std::string& name, int count, const std::function<void()>& operation) const {
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

void calls(const Report& report) {
  std::vector<ray::ActorHandle<Counter>> counter{ray::Actor(Counter::create).Remote()};
  report.latency("actor_call_sync", 500, [&] { counter[0].Task(&Counter::add).Remote(1).Get(); });
  report.rate("actor_call_async", "1/s", 2000, [&] { get_all(add_one(counter, 2000)); });
  counter[0].Kill();
}

/// A process of its own that makes calls whenever it is told to.
class Caller {
 public:
  Caller(char** argv, int counters) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    const auto count = std::to_string(counters);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDIN_FILENO);
      execl(argv[0], argv[0], "calls", argv[2], argv[3], count.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    socket_ = ends[0];
    wait();
  }
  ~Caller() {
    close(socket_);
    waitpid(pid_, nullptr, 0);
  }
  void start() { (void)!write(socket_, "g", 1); }
  void wait() {
    char done;
    if (read(socket_, &done, 1) != 1) std::abort();
  }

 private:
  pid_t pid_;
  int socket_;
};

/// The other end of it.
void serve_calls(int count) {
  std::vector<ray::ActorHandle<Counter>> counters;
  for (int i = 0; i < count; ++i) counters.push_back(*ray::GetActor<Counter>(counter_name(i)));
  get_all(add_one(counters, count));
  char go;
  do {
    (void)!write(STDIN_FILENO, "d", 1);
    if (read(STDIN_FILENO, &go, 1) != 1) return;
    get_all(add_one(counters, 1000));
  } while (true);
}

/// The callers are drivers: an actor that makes hundreds of calls to others before it gets a result stops for ever
/// (Ray 2.60, its C++ API).
void many_to_many(const Report& report, char** argv) {
  const int n = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<ray::ActorHandle<Counter>> counters;
  for (int i = 0; i < n; ++i) counters.push_back(ray::Actor(Counter::create).SetName(counter_name(i)).Remote());
  get_all(add_one(counters, n));  // they are there, so they are found by name
  {
    std::vector<std::unique_ptr<Caller>> callers;
    for (int i = 0; i < n; ++i) callers.push_back(std::make_unique<Caller>(argv, n));
    report.rate("actor_calls_n_to_n", "1/s", 1000.0 * n, [&] {
      for (auto& caller : callers) caller->start();
      for (auto& caller : callers) caller->wait();
    });
  }
  for (auto& counter : counters) counter.Kill();
}

void tasks(const Report& report) {
  report.latency("task_sync", 300, [] { ray::Task(small).Remote(1).Get(); });
  report.rate("task_async", "1/s", 1000, [] {
    std::vector<ray::ObjectRef<int>> refs;
    for (int i = 0; i < 1000; ++i) refs.push_back(ray::Task(small).Remote(1));
    get_all(refs);
  });
}

void values(const Report& report) {
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
void actors(const Report& report) {
  const auto start = Clock::now();
  std::vector<ray::ActorHandle<Counter>> actors;
  for (int i = 0; i < 20; ++i) actors.push_back(ray::Actor(Counter::create).SetResources({{"CPU", 0.01}}).Remote());
  get_all(add_one(actors, 20));
  report.print("actors_started_20", 20 / seconds_since(start), "1/s");
  for (auto& actor : actors) actor.Kill();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string what = argv[1];
  ray::RayConfig config;
  config.code_search_path = {argv[2]};
  config.address = argv[3];
  config.ray_namespace = "core_bench";  // actors are found by name across drivers
  ray::Init(config);
  if (what == "first") {
    std::printf("result %d\n", *ray::Task(small).Remote(42).Get());
    std::fflush(stdout);
  } else if (what == "calls") {
    serve_calls(std::atoi(argv[4]));
  } else {
    const Report report(argc > 4 ? std::atof(argv[4]) : 1);
    calls(report);
    many_to_many(report, argv);
    tasks(report);
    values(report);
    actors(report);
  }
  ray::Shutdown();
}
