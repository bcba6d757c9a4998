// Calls between two processes of one machine: from their socket into the ring, in it, and out of it
// again.
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <sys/uio.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "functions.hpp"
#include "guard.hpp"
#include "rounds.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/// So many calls that the two have a channel for sure.
template <class T>
void talk_much(const T& actor) {
  for (int i = 0; i < 200; ++i) actor.template call<&Counter::pid>().get(kGuard);
}

bool shares_a_ring(int pid) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           "/proc/" + std::to_string(pid) + "/map_files", ignored)) {
    if (std::filesystem::read_symlink(entry, ignored).string().starts_with("/memfd:troupe-ring"))
      return true;
  }
  return false;
}

struct Echo {
  std::string first(const std::string& text, const std::string&) const { return text; }
  int total(const std::string& text, const std::string& more) {
    return sum += static_cast<int>(text.size() + more.size());
  }
  int pid() const { return getpid(); }
  int die() const { return dies_by(SIGKILL); }
  int sum = 0;
};

/// Around each border: what was once the largest in a ring, half a ring with both arguments, and
/// the object store's.
const std::vector<std::pair<std::size_t, std::size_t>> kSizes{
    {0, 0},           {32'728, 0},      {32'729, 0},       {65'536, 1},
    {102'399, 0},     {102'400, 0},     {102'399, 28'617}, {102'399, 28'618},
    {65'508, 65'508}, {65'508, 65'509}, {102'399, 102'399}};

/// As a stray pointer of the program would, but by the kernel: the loop reads there meanwhile, which
/// a sanitizer would report as the race that it is.
void overwrite_rings() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:troupe-ring") == std::string::npos) continue;
    std::size_t end = 0;
    const auto begin = std::stoull(line, &end, 16);
    const auto bytes = std::stoull(line.substr(end + 1), nullptr, 16) - begin;
    std::vector<char> garbage(bytes, '\xee');
    const iovec from{.iov_base = garbage.data(), .iov_len = bytes};
    const iovec into{.iov_base = reinterpret_cast<void*>(begin), .iov_len = bytes};
    CHECK(::process_vm_writev(::getpid(), &from, 1, &into, 1, 0) == static_cast<ssize_t>(bytes));
  }
}

}  // namespace

TEST_CASE("two processes that talk much share a ring, and order holds across the switch",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  auto counter = spawn<Counter>(0);
  std::vector<Ref<int>> totals;
  for (int i = 1; i <= 20'000; ++i) {
    totals.push_back(counter.call<&Counter::add>(1));
    if (i % 1000 == 0) totals.back().get(kGuard);
  }
  for (int i = 1; i <= 20'000; ++i)
    REQUIRE(totals[static_cast<std::size_t>(i) - 1].get(kGuard) == i);
  if (::geteuid() == 0) CHECK(shares_a_ring(counter.call<&Counter::pid>().get()));
}

TEST_CASE("a call with a ref, a large one and one that fails keep their place among small ones",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  auto log = spawn<Log>();
  for (int i = 0; i < 100; ++i) log.call<&Log::add>("warm").get(kGuard);
  log.call<&Log::clear>().get(kGuard);
  auto late = task<[](int milliseconds) {
    usleep(static_cast<useconds_t>(milliseconds) * 1000);
    return std::string("late");
  }>(50);
  std::vector<Ref<int>> done;
  done.push_back(log.call<&Log::add>("first"));
  done.push_back(log.call<&Log::add>(late));  // waits for a value, and all behind it with it
  done.push_back(log.call<&Log::add>("third"));
  done.push_back(log.call<&Log::add>(std::string(100'000, 'x')));  // no ring takes it
  done.push_back(log.call<&Log::add>("fifth"));
  done.push_back(log.call<&Log::add_ref>(put(std::string("sixth"))));
  auto fails = log.call<&Log::fail>("seventh");
  done.push_back(log.call<&Log::add>("eighth"));
  get(done);
  CHECK_THROWS_AS(fails.get(kGuard), TaskError);
  auto lines = log.call<&Log::lines>().get(kGuard);
  REQUIRE(lines.size() == 8);
  lines[3] = lines[3].substr(0, 3);
  CHECK(lines == std::vector<std::string>{"first", "late", "third", "xxx", "fifth", "sixth",
                                          "seventh", "eighth"});
}

TEST_CASE(
    "arguments and results of all sizes below the object store's keep their place among small ones",
    "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  auto echo = spawn<Echo>();
  for (int i = 0; i < 200; ++i) echo.call<&Echo::pid>().get(kGuard);
  std::vector<Ref<int>> totals;
  std::vector<Ref<std::string>> texts;
  std::vector<int> expected;
  int sum = 0;
  for (int round = 0; round < 10; ++round) {
    for (const auto& [first, second] : kSizes) {
      const std::string text(first, static_cast<char>('a' + round));
      totals.push_back(echo.call<&Echo::total>(text, std::string(second, 'x')));
      totals.push_back(echo.call<&Echo::total>("a", "b"));
      texts.push_back(echo.call<&Echo::first>(text, "y"));
      sum += static_cast<int>(first + second);
      expected.push_back(sum);
      expected.push_back(sum += 2);
    }
  }
  for (std::size_t i = 0; i < totals.size(); ++i) CHECK(totals[i].get(kGuard) == expected[i]);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get(kGuard);
    CHECK(text ==
          std::string(kSizes[i % kSizes.size()].first, static_cast<char>('a' + i / kSizes.size())));
  }
}

TEST_CASE(
    "a process killed amid calls with values of half a ring: each is answered or lost, and none is "
    "wrong",
    "[runtime][session][channel][failure]") {
  auto cluster = init({.cpus = 2});
  for (int round = 0; round < 5; ++round) {
    auto echo = spawn<Echo>();
    for (int i = 0; i < 100; ++i) echo.call<&Echo::pid>().get(kGuard);
    const std::string text(100'000, 'x');
    std::vector<Ref<std::string>> texts;
    for (int i = 0; i < 20; ++i) texts.push_back(echo.call<&Echo::first>(text, ""));
    const auto death = echo.call<&Echo::die>();
    for (int i = 0; i < 20; ++i) texts.push_back(echo.call<&Echo::first>(text, ""));
    CHECK_THROWS_AS(death.get(kGuard), ActorDied);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      try {
        const auto got = texts[i].get(kGuard);
        CHECK(i < 20);  // those after its death are never answered
        CHECK(got == text);
      } catch (const ActorDied&) {
      }
    }
  }
}

TEST_CASE("a hundred thousand calls that nobody waits for are all answered",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  auto counter = spawn<Counter>(0);
  talk_much(counter);
  std::vector<Ref<int>> totals;  // more than both rings hold
  for (int i = 1; i <= 100'000; ++i) totals.push_back(counter.call<&Counter::add>(1));
  const auto deadline = Clock::now() + kGuard;
  for (auto& total : totals) {
    // No get(): the loop looks.
    while (!total.ready() && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
    REQUIRE(total.ready());
  }
  CHECK(totals.back().get() == 100'000);
}

TEST_CASE("what follows from a value follows although nobody waits for it",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  auto first = spawn<Counter>(0), second = spawn<Counter>(0);
  talk_much(first);
  talk_much(second);
  for (int i = 1; i <= 200; ++i) {
    // A ref of one as an argument of the other.
    auto total = second.call<&Counter::add>(first.call<&Counter::add>(1));
    REQUIRE(total.get(kGuard) == i * (i + 1) / 2);
  }
}

TEST_CASE("threads that call one actor at once each get their own answers, in their own order",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  auto counter = spawn<Counter>(0);
  talk_much(counter);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      int before = 0;
      for (int i = 0; i < 5'000; ++i) {
        const int total = counter.call<&Counter::add>(1).get(kGuard);
        if (total <= before) ++wrong;
        before = total;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(counter.call<&Counter::add>(0).get(kGuard) == 20'000);
}

TEST_CASE(
    "a process killed with calls in the ring: those that ran and those that wait fail with "
    "ActorDied",
    "[runtime][session][channel][failure]") {
  auto cluster = init({.cpus = 2});
  auto counter = spawn<Counter>(0);
  talk_much(counter);
  auto before = counter.call<&Counter::add>(1);
  auto dies = counter.call<&Counter::die>(SIGKILL);
  auto after = counter.call<&Counter::add>(1);
  CHECK(before.get(kGuard) == 1);  // answered before the end counts
  CHECK_THROWS_AS(dies.get(kGuard), ActorDied);
  CHECK_THROWS_AS(after.get(kGuard), ActorDied);
  CHECK(dies.failure()->signal == SIGKILL);
  CHECK_THROWS_AS(counter.call<&Counter::add>(1).get(kGuard), ActorDied);
}

TEST_CASE("a call that stands in the ring and has not started is cancelled for good",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  auto counter = spawn<Counter>(0);
  talk_much(counter);
  Gate gate;
  const auto slow = counter.call<&Counter::waits>(gate.path());
  auto dropped = counter.call<&Counter::add>(5);
  dropped.cancel();
  CHECK_THROWS_AS(dropped.get(kGuard), Cancelled);
  gate.open();
  CHECK(counter.call<&Counter::add>(0).get(kGuard) == 0);
}

TEST_CASE("short tasks stand in line at one lease; one that takes long gives back those behind it",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 2});
  // Short, as far as anybody knows.
  for (int i = 0; i < 500; ++i) REQUIRE(task<twice>(i).get(kGuard) == 2 * i);
  Gate gate;
  std::vector<Ref<int>> line{task<wait_at>(gate.path())};  // which ends after those behind it
  for (int i = 0; i < 200; ++i) line.push_back(task<twice>(i));
  for (int i = 0; i < 200; ++i) REQUIRE(line[static_cast<std::size_t>(i) + 1].get(kGuard) == 2 * i);
  CHECK_FALSE(line.front().ready());
  gate.open();
  CHECK(line.front().get(kGuard) == 1);
}

TEST_CASE("a task that waits for one behind it in its line gets it, on one CPU too",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 1});
  for (int i = 0; i < 500; ++i) task<twice>(i).get(kGuard);
  CHECK(task<nested>(10).get(kGuard) == 10);
  std::vector<Ref<int>> many;
  for (int i = 0; i < 20; ++i) many.push_back(task<nested>(2));
  for (auto& ref : many) CHECK(ref.get(kGuard) == 2);
}

TEST_CASE("a task that waits for one that no ring carries gets it, on one CPU too",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 1});
  for (int i = 0; i < 500; ++i) task<twice>(i).get(kGuard);
  std::vector<Ref<int>> many;
  for (int i = 0; i < 4; ++i) many.push_back(task<waits_for_large>(i));
  for (int i = 0; i < 4; ++i) CHECK(many[static_cast<std::size_t>(i)].get(kGuard) == 200'000 + i);
}

TEST_CASE("a task that ends its process takes none of those in line behind it along",
          "[runtime][session][channel][failure]") {
  auto cluster = init({.cpus = 1});
  for (int i = 0; i < 500; ++i) task<twice>(i).get(kGuard);
  auto poison = with({.retries = 0}).task<dies_by>(SIGKILL);
  std::vector<Ref<int>> line;
  for (int i = 0; i < 100; ++i) line.push_back(with({.retries = 0}).task<twice>(i));
  CHECK_THROWS_AS(poison.get(kGuard), ProcessDied);
  for (int i = 0; i < 100; ++i) CHECK(line[static_cast<std::size_t>(i)].get(kGuard) == 2 * i);
}

TEST_CASE("an actor that calls another one through its own channel is answered by it",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 3});
  auto counter = spawn<Counter>(0);
  auto caller = spawn<Caller>(counter);
  const auto calls = static_cast<int>(rounds(3'000));
  CHECK(caller.call<&Caller::add_many>(calls).get(kGuard) == calls);
  CHECK(counter.call<&Counter::add>(0).get(kGuard) == calls);
}

TEST_CASE("a task that asks again and again for what a later one changes lives to see it",
          "[runtime][session][channel]") {
  for (const double cpus : {1.0, 2.0}) {
    auto cluster = init({.cpus = cpus});
    auto gate = spawn<Counter>(0);
    auto watches = task<waits_for_gate>(gate);
    auto opens = task<opens_gate>(gate, std::string(100'000, 'x'));  // no ring takes it
    CHECK(opens.get(kGuard) == 1);
    CHECK(watches.get(kGuard) == 1);
  }
}

TEST_CASE("tens of thousands of tasks and calls are cancelled in a moment",
          "[runtime][session][channel]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kMany = 4'000;
#else
  constexpr int kMany = 40'000;
#endif
  auto cluster = init({.cpus = 1});
  auto counter = spawn<Counter>(0);
  talk_much(counter);
  Gate gate;
  const auto busy = counter.call<&Counter::waits>(gate.path());
  std::vector<Ref<int>> calls, tasks;
  for (int i = 0; i < kMany; ++i) {
    calls.push_back(counter.call<&Counter::add>(1));
    tasks.push_back(task<wait_at>(gate.path()));
  }
  const auto start = std::clock();         // of this process, which a slow machine does not move
  for (auto i = calls.size(); i-- > 0;) {  // from the end, as a search would like it least
    calls[i].cancel();
    tasks[i].cancel();
  }
  int cancelled = 0;
  for (const auto& ref : calls) cancelled += ref.wait_for(kGuard) && ref.failure() ? 1 : 0;
  for (std::size_t i = 8; i < tasks.size(); ++i)
    cancelled += tasks[i].wait_for(kGuard) && tasks[i].failure() ? 1 : 0;
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 5);
  CHECK(cancelled == 2 * kMany - 8);
  gate.open();
  CHECK(counter.call<&Counter::add>(1).get(kGuard) == 1);
}

TEST_CASE("a ring that is overwritten fails the calls in it, and both sides go on",
          "[runtime][session][channel][failure]") {
  auto cluster = init({.cpus = 2});
  auto counter = spawn<Counter>(0);
  talk_much(counter);
  Gate gate;
  auto slow = counter.call<&Counter::waits>(gate.path());
  std::vector<Ref<int>> behind;
  for (int i = 0; i < 10; ++i) behind.push_back(counter.call<&Counter::add>(1));
  overwrite_rings();
  CHECK_THROWS_AS(slow.get(kGuard), Disconnected);
  for (const auto& ref : behind) CHECK_THROWS_AS(ref.get(kGuard), Disconnected);
  gate.open();
  CHECK(counter.call<&Counter::pid>().get(kGuard) > 0);
}

TEST_CASE("calls of others that came before a constructor in a ring run after it",
          "[runtime][session][channel]") {
  auto cluster = init({.cpus = 1});
  // The process of these tasks, with the ring that they open, becomes the actor's.
  for (int i = 0; i < 3'000; ++i) task<twice>(i).get(kGuard);
  const auto start = with({.cpus = 0}).task<sleeps>(300);
  const auto counter = spawn<Counter>(start);
  auto caller = with({.cpus = 0}).task<adds_for>(counter, 1);
  CHECK(caller.get(kGuard) == 301);
  CHECK(counter.call<&Counter::add>(1).get(kGuard) == 302);
}

TEST_CASE("threads that wait when their cluster ends are told", "[runtime][session][channel]") {
  std::vector<std::thread> threads;
  std::atomic<int> told{0};
  {
    auto cluster = init({.cpus = 2});
    auto counter = spawn<Counter>(0);
    talk_much(counter);
    auto expect_end = [&](Ref<int> ref) {
      try {
        ref.get(kGuard);
      } catch (const Disconnected&) {
        ++told;
      }
    };
    auto slow = counter.call<[](Counter&) {
      usleep(20'000'000);
      return 0;
    }>();
    threads.emplace_back(expect_end, slow);
    threads.emplace_back(expect_end, counter.call<&Counter::add>(1));
    threads.emplace_back(expect_end, task<sleeps>(20'000));
    threads.emplace_back(expect_end, with({.cpus = 2}).task<sleeps>(1));
    std::this_thread::sleep_for(100ms);  // let them wait; the outcome is the same if one is late
  }
  for (auto& thread : threads) thread.join();
  CHECK(told == 4);
}
