// Gangs that are asked for without waiting, in a private cluster.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <troupe/troupe.hpp>
#include "eventually.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using troupe::test::eventually;
using troupe::test::kGuard;

namespace {

struct Numbered {
  explicit Numbered(int start) : value(start) {}
  int get() const { return value; }
  int value;
};

struct Alone {
  int rank() const { return (*this_gang()).rank(); }
  bool has_none() const { return this_gang() == nullptr; }
};

struct Listener {
  /// Makes the file `begins`, and its rank behind that, before it waits for the key.
  std::string hear(const std::string& key, const std::string& begins) {
    auto& gang = *this_gang();
    std::ofstream(begins + std::to_string(gang.rank())).flush();
    return gang.rendezvous().get(key, kGuard);
  }
};

int answer() { return 42; }

void nap() { std::this_thread::sleep_for(20ms); }

/// Nothing waits, no gang is left, and the node has all that it has.
bool becomes_all_free(const Cluster& cluster) {
  return eventually([&] {
    const auto status = nlohmann::json::parse(cluster.status_json());
    for (const auto& node : status["nodes"]) {
      if (node["free"] != node["total"]) return false;
    }
    return status["gangs"].empty() && status["pending"].empty() &&
           status["tables"]["requests"] == 0;
  });
}

/// Keeps `width` tasks under way until it is destroyed.
class Stream {
 public:
  explicit Stream(int width) : thread_([this, width] { run(width); }) {}
  int done() const { return done_; }

 private:
  void run(int width) {
    std::vector<Ref<void>> tasks;
    while (!over_.load()) {
      while (static_cast<int>(tasks.size()) < width) tasks.push_back(task<nap>());
      auto waited = wait(tasks, 1, 1s);
      done_ += static_cast<int>(waited.ready.size());
      tasks = std::move(waited.unready);
    }
  }
  struct End {
    std::atomic<bool>& over;
    ~End() { over = true; }
  };

  std::atomic<int> done_{0};
  std::atomic<bool> over_{false};
  std::jthread thread_;
  End end_{over_};  // before the thread is joined
};

}  // namespace

TEST_CASE(
    "an actor that is no rank and asks for its gang gets an error, not the end of its process",
    "[session][gang]") {
  const auto cluster = init(InitOptions{.cpus = 1});
  const auto alone = spawn<Alone>();
  CHECK_THROWS_WITH(alone.call<&Alone::rank>().get(kGuard),
                    Catch::Contains("the actor that runs here is no rank of a gang"));
  CHECK(alone.call<&Alone::has_none>().get(kGuard));
}

TEST_CASE("a gang is asked for without waiting, and waited for together with other refs",
          "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 2});
  auto first = place<Numbered>({.size = 2}, 3);
  auto second = place<Numbered>({.size = 2}, 4);
  REQUIRE(first.wait_for(kGuard));
  const auto waited = wait(std::vector{first.placed(), second.placed()}, 2, 100ms);
  CHECK(waited.ready == std::vector{first.placed()});  // the other one waits for the same CPUs
  {
    const auto gang = first.get();
    CHECK(get(gang.all<&Numbered::get>()) == std::vector{3, 3});
    CHECK_THROWS_AS(first.placed(), std::logic_error);
    gang.kill();
  }
  CHECK(get(second.get().all<&Numbered::get>()) == std::vector{4, 4});
  CHECK(becomes_all_free(cluster));
}

TEST_CASE("who made a gang tells its ranks something while their actors are in a call",
          "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 3});
  const auto ranks = gang<Listener>({.size = 2});
  std::string folder = std::filesystem::temp_directory_path() / "troupe-tell-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const auto heard = ranks.all<&Listener::hear>("key", folder + "/");
  CHECK(eventually([&] {
    return std::filesystem::exists(folder + "/0") && std::filesystem::exists(folder + "/1");
  }));
  std::filesystem::remove_all(folder);
  CHECK(wait(heard, 1, 0ms).ready.empty());
  // Nothing is told to an actor that is in no gang.
  detail::tell_gang(spawn<Numbered>(1).state(), "key", "told");
  detail::tell_gang(ranks.rank(1).state(), "key", "told");
  CHECK(get(heard) == std::vector<std::string>{"told", "told"});

  const auto rank = ranks.rank(0).state();
  ranks.kill();
  for (int i = 0; i < 3; ++i) detail::tell_gang(rank, "key " + std::to_string(i), "too late");
  CHECK(task<answer>().get(kGuard) == 42);
}

TEST_CASE("a gang that is not placed in time is not placed at all", "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 2});
  const auto all = gang<Numbered>({.size = 2}, 1);
  auto late = place<Numbered>({.size = 1, .timeout = 50ms}, 2);
  REQUIRE(late.wait_for(kGuard));
  CHECK(late.placed().failure()->kind == Failure::Kind::TimedOut);
  CHECK_THROWS_AS(late.get(), TimedOut);
  CHECK_THROWS_WITH(gang<Numbered>({.size = 1, .timeout = 50ms}, 2),
                    "a gang of 1 rank was not placed within 50 ms; `troupe status`, or "
                    "Cluster::status_json() in this program, says what such a gang waits for");
  CHECK(nlohmann::json::parse(cluster.status_json())["pending"].empty());
}

TEST_CASE("what can never be placed says so to whoever waits", "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 2});
  auto impossible = place<Numbered>({.size = 3, .each = {.cpus = 1000}}, 1);
  CHECK_THROWS_AS(impossible.get(), Impossible);
  impossible.cancel();
  CHECK_THROWS_AS(impossible.get(), Impossible);
  CHECK_THROWS_AS(place<Numbered>({.size = 0}, 1), std::invalid_argument);
}

TEST_CASE("a request that is cancelled leaves the queue, and who waits for it is told",
          "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 2});
  const auto all = gang<Numbered>({.size = 2}, 1);
  auto cancelled = place<Numbered>({.size = 2}, 2);
  auto by_ref = place<Numbered>({.size = 2}, 3);
  auto kept = place<Numbered>({.size = 2}, 4);
  cancelled.cancel();
  by_ref.placed().cancel();
  CHECK_THROWS_AS(cancelled.get(), Cancelled);
  CHECK_THROWS_AS(by_ref.get(), Cancelled);
  { const auto forgotten = place<Numbered>({.size = 2}, 5); }
  all.kill();
  CHECK(get(kept.get().all<&Numbered::get>()) == std::vector{4, 4});
  CHECK(becomes_all_free(cluster));
}

TEST_CASE("who waits for a gang is woken when another thread cancels the request",
          "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 2});
  const auto all = gang<Numbered>({.size = 2}, 1);
  for (int i = 0; i < 20; ++i) {
    auto pending = place<Numbered>({.size = 2}, 2);
    std::jthread cancels([placed = pending.placed(), i] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 50));
      placed.cancel();
    });
    CHECK_THROWS_AS(pending.get(), Cancelled);
  }
  all.kill();
  CHECK(becomes_all_free(cluster));
}

TEST_CASE("a gang that is cancelled while it is being placed holds nothing",
          "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 4});
  constexpr int kGangs = 300;
  int placed = 0;
  for (int i = 0; i < kGangs; ++i) {
    auto pending = place<Numbered>({.size = 1 + i % 4}, i);
    // From at once to well after the grant of a warm worker process, which takes less than a
    // millisecond.
    if (i % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 10));
    placed += pending.placed().ready() ? 1 : 0;
    if (i % 2 == 0) pending.cancel();
  }
  INFO(placed << " of " << kGangs << " were placed when they were cancelled");
  CHECK(becomes_all_free(cluster));
  CHECK(get(gang<Numbered>({.size = 4, .timeout = kGuard}, 7).all<&Numbered::get>()) ==
        std::vector{7, 7, 7, 7});
}

TEST_CASE(
    "a pending gang keeps its place beside a stream of small tasks, however often it is asked for",
    "[runtime][session][gang]") {
  const auto cluster = init({.cpus = 4});
  Stream stream(16);
  REQUIRE(eventually([&] { return stream.done() > 40; }));
  auto pending = place<Numbered>({.size = 4}, 1);  // of all CPUs
  const auto began = std::chrono::steady_clock::now();
  while (!pending.wait_for(10ms) && std::chrono::steady_clock::now() - began < 60s) continue;
  REQUIRE(pending.placed().ready());
  CHECK(get(pending.get().all<&Numbered::get>()) == std::vector(4, 1));
}
