#include <troupe/detail/trainable/trial_run.hpp>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "fake_gang.hpp"
#include "guard.hpp"

using namespace troupe;
using namespace troupe::detail;
using troupe::test::kGuard;
using Kind = TrialEvent::Kind;

namespace {

struct Context {
  explicit Context(Member& m) : member(m) {}
  Member& member;
};
struct Config {
  int steps = 3;
  bool heeds_stop = true;
};

/// Reports `steps` times; -> how often all ranks were told to go on.
int train(Context& context, const Config& config) {
  int went_on = 0;
  for (int step = 0; step < config.steps; ++step) {
    const auto verdict = context.member.report({{"step", step}}, context.member.storage());
    if (verdict == Verdict::Stop && config.heeds_stop) return -went_on;
    ++went_on;
  }
  return went_on;
}

double fail_on_rank_1(Context& context, const Config&) {
  context.member.report({{"x", 1}}, "");
  if (context.member.gang().rank() == 1) throw std::domain_error("rank 1 is at a loss");
  context.member.report({{"x", 2}}, "");
  return 1;
}

void only_reports(Context& context, const Config&) { context.member.report({{"seed", 1.5}}, ""); }

/// How often the thread has given up its processor to wait.
long switches_of(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string word; status >> word;) {
    if (word != "voluntary_ctxt_switches:") continue;
    long count = 0;
    status >> count;
    return count;
  }
  return -1;
}
bool sleeps(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string word; status >> word;) {
    if (word != "State:") continue;
    status >> word;
    return word == "S";
  }
  return false;
}

template <auto F>
TrialRun<F> start(int size, trainable_config<F> config, RunInfo info = {}) {
  return TrialRun<F>(gang<TrainableWorker<F>>({.size = size}, std::move(config), std::move(info)));
}

}  // namespace

static_assert(std::is_same_v<trainable_config<train>, Config>);
static_assert(std::is_same_v<trainable_context<train>, Context>);
static_assert(std::is_same_v<trainable_result<fail_on_rank_1>, double>);

TEST_CASE("metrics are filled and read by name", "[runtime][api][metrics]") {
  Metrics metrics{{"loss", 0.5}};
  metrics["loss"] = 0.25;
  metrics["steps"] = 3;
  metrics["steps"] += 1;
  REQUIRE(metrics.size() == 2);
  CHECK(metrics[0].name == "loss");
  CHECK(metrics[1].value == 4);
  const auto& read = metrics;
  CHECK(read.at("loss") == 0.25);
  CHECK_THROWS_WITH(read.at("acuracy"), "no metric is named 'acuracy'");
  CHECK_THROWS_AS(read.at("acuracy"), std::out_of_range);
  CHECK(read.size() == 2);
}

TEST_CASE("a metric that stands twice in a report counts with its last value",
          "[runtime][api][metrics]") {
  Metrics metrics{{"loss", 1.0}, {"loss", 2.0}};
  CHECK(metrics.at("loss") == 2);
  metrics["loss"] = 3;
  CHECK(metrics[0].value == 1);
  CHECK(metrics[1].value == 3);
}

TEST_CASE("the reports of rank 0 reach the driver one by one, and its value at the end",
          "[api][trainable]") {
  auto run = start<train>(3, {.steps = 2}, {.storage = "somewhere"});
  for (int step = 0; step < 2; ++step) {
    const auto event = run.wait();
    REQUIRE(event.kind == Kind::Report);
    CHECK(event.index == static_cast<std::uint64_t>(step));
    REQUIRE(event.metrics.size() == 1);
    CHECK(event.metrics[0].name == "step");
    CHECK(event.metrics[0].value == step);
    CHECK(event.checkpoint == "somewhere");
    CHECK(event.elapsed_s >= 0);
    run.answer(Verdict::Continue);
  }
  const auto end = run.wait();
  CHECK(end.kind == Kind::Finished);
  CHECK(end.index == 2);
  CHECK(end.returned);
  CHECK_FALSE(end.stopped);
  CHECK(run.result() == 2);
}

TEST_CASE("all ranks get the same verdict for a report", "[api][trainable]") {
  auto run = start<train>(3, {.steps = 5});
  run.wait();
  run.answer(Verdict::Continue);
  run.wait();
  run.answer(Verdict::Stop);
  const auto end = run.wait();
  CHECK(end.kind == Kind::Finished);
  CHECK(end.stopped);
  CHECK(end.returned);
  CHECK(run.result() == -1);  // which waits for the other ranks: they have left their loops too
}

TEST_CASE("a function that ignores Stop is stopped at its next report", "[api][trainable]") {
  auto run = start<train>(2, {.steps = 5, .heeds_stop = false});
  run.wait();
  run.answer(Verdict::Stop);
  const auto end = run.wait();
  CHECK(end.kind == Kind::Finished);
  CHECK(end.stopped);
  CHECK_FALSE(end.returned);
  CHECK(end.index == 1);
  CHECK_THROWS_AS(run.result(), TaskError);
}

TEST_CASE("an exception on any rank ends the run as that exception", "[api][trainable]") {
  auto run = start<fail_on_rank_1>(2, {});
  run.wait();
  run.answer(Verdict::Continue);
  try {
    for (;;) {
      run.wait();
      run.answer(Verdict::Continue);
      if (run.result() == 1) break;
    }
    FAIL("the run went well");
  } catch (const TaskError& error) {
    CHECK(error.type() == "std::domain_error");
    CHECK(error.failure().message == "rank 1 is at a loss");
  }
}

TEST_CASE("the death of a rank is blamed on it, not on those that it leaves", "[api][trainable]") {
  auto run = start<train>(3, {.steps = 2});
  run.wait();
  run.gang().rank(1).kill();
  run.answer(Verdict::Continue);
  try {
    for (;;) {
      run.wait();
      run.answer(Verdict::Continue);
    }
  } catch (const Error& error) {
    CHECK(error.failure().kind == Failure::Kind::ActorDied);
    CHECK(error.failure().signal == 9);
  }
}

TEST_CASE("a function without a result is a trainable", "[api][trainable]") {
  auto run = start<only_reports>(1, {});
  CHECK(run.wait().metrics[0].value == 1.5);
  run.answer(Verdict::Continue);
  CHECK(run.wait().returned);
  run.result();
}

TEST_CASE("several runs are waited for together", "[api][trainable]") {
  std::vector<TrialRun<train>> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(start<train>(2, {.steps = i + 1}));
  std::size_t finished = 0;
  std::vector<int> reports(runs.size());
  while (finished < runs.size()) {
    std::vector<ObjectPtr> objects;
    for (auto& run : runs) run.progress().collect(objects);
    wait_objects(objects, 1, kGuard);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto event = runs[i].progress().poll();
      if (!event) continue;
      if (event->kind == Kind::Finished) {
        ++finished;
      } else {
        ++reports[i];
        runs[i].answer(Verdict::Continue);
      }
    }
  }
  CHECK(reports == std::vector{1, 2, 3});
}

TEST_CASE("a report waits no longer than its gang is whole", "[api][trainable]") {
  const auto table = std::make_shared<fake::GangTable>();
  fake::GangOfThreads context(table, 0, 2);
  TrialSession session(context, {});
  std::atomic<bool> left = false;
  session.start("body", [&](Member& member) {
    try {
      member.report({}, "");
    } catch (const GangBroken& error) {
      left = std::string(error.what()) == "rank 1 was killed by signal 9";
      throw;
    }
  });
  CHECK(session.next(std::nullopt).kind == Kind::Report);
  table->break_up();
  CHECK_THROWS_AS(session.finish(), GangBroken);
  const auto deadline = std::chrono::steady_clock::now() + kGuard;
  while (!left && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(left);
}

TEST_CASE("who waits for a rank's function sleeps until it ends or the gang breaks",
          "[api][trainable]") {
  const auto table = std::make_shared<fake::GangTable>();
  fake::GangOfThreads context(table, 0, 2);
  TrialSession session(context, {});
  std::atomic<bool> ends = false;
  session.start("body", [&](Member&) { ends.wait(false); });
  std::atomic<pid_t> waiter = 0;
  std::atomic<bool> left = false;
  std::jthread waiting([&] {
    waiter = gettid();
    CHECK_THROWS_AS(session.finish(), GangBroken);
    left = true;
  });
  const auto until = [](const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kGuard;
    while (!done()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  };
  REQUIRE(until([&] { return waiter != 0 && sleeps(waiter); }));
  // A machine that stands still now and then counts its own switches, but not each time.
  CHECK(until([&] {
    const auto before = switches_of(waiter);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));  // in which nothing happens
    return switches_of(waiter) - before <= 2;
  }));

  table->break_up();
  CHECK(until([&] { return left.load(); }));
  ends = true;
  ends.notify_all();
}

TEST_CASE("a gang that is broken when somebody asks to be told of it is told of at once",
          "[api][trainable]") {
  BreakListeners listeners;
  int heard = 0;
  auto registration = listeners.add([&] { ++heard; });
  static_cast<void>(listeners.add([&] { heard += 100; }));  // whose registration is gone at once
  listeners.notify();
  CHECK(heard == 1);
  CHECK(listeners.add([&] { heard += 10; }) == nullptr);
  CHECK(heard == 11);
}

TEST_CASE("a report that rank 0 does not come to any more ends with why", "[api][trainable]") {
  const bool throws = GENERATE(false, true);
  const auto table = std::make_shared<fake::GangTable>();
  fake::GangOfThreads first(table, 0, 2);
  fake::GangOfThreads second(table, 1, 2);
  TrialSession other(second, {});
  other.start("body", [](Member& member) { member.report({}, ""); });
  TrialSession session(first, {});
  session.start("body", [throws](Member&) {
    if (throws) throw std::domain_error("at a loss");
  });
  try {
    other.finish();
    FAIL("the report was answered");
  } catch (const GangBroken& error) {
    CHECK(std::string(error.what()) == std::string("the function of rank 0 has ") +
                                           (throws ? "thrown an exception" : "returned") +
                                           "; rank 1 waits in report 0");
  }
}

TEST_CASE("a later run of a gang sees the same gang, and keys of its own", "[api][trainable]") {
  const auto table = std::make_shared<fake::GangTable>();
  fake::GangOfThreads context(table, 1, 2);
  const auto run = [&](std::uint32_t number, const std::string& value) {
    TrialSession session(context, {.seed = number}, number);
    session.start("body", [&](Member& member) {
      auto& gang = member.gang();
      gang.rendezvous().set("key", value);
      const bool same = gang.id() == context.id() && gang.rank() == 1 && gang.size() == 2 &&
                        gang.local_rank() == 1 && gang.local_size() == 2 && gang.node_rank() == 0 &&
                        gang.node_count() == 1 && gang.node_ranks() == context.node_ranks() &&
                        gang.node() == context.node() && gang.host() == context.host() &&
                        &gang.broken() == &context.broken() &&
                        gang.why_broken().message == table->why && member.seed() == number;
      if (!same || gang.rendezvous().get("key", kGuard) != value) throw std::logic_error(value);
    });
    session.finish();
  };
  run(1, "first");
  run(2, "second");
  run(3, "third");
  CHECK(table->rendezvous.get("key", std::chrono::milliseconds(0)) == "first");
  CHECK(table->rendezvous.get("run 3/key", std::chrono::milliseconds(0)) == "third");
}

TEST_CASE("a report leaves nothing behind in the rendezvous of its gang", "[api][trainable]") {
  constexpr int kReports = 2'000;
  const std::uint32_t run = GENERATE(1, 2);
  const auto table = std::make_shared<fake::GangTable>();
  fake::GangOfThreads first(table, 0, 2), second(table, 1, 2);
  TrialSession judged(first, {}, run), waits(second, {}, run);
  const auto reports = [](Member& member) {
    for (int i = 0; i < kReports; ++i) member.report({}, "");
  };
  judged.start("body", reports);
  waits.start("body", reports);
  auto event = judged.next(std::nullopt);
  std::size_t names = 0;
  for (int i = 0; i < kReports; ++i) {
    REQUIRE(event.kind == Kind::Report);
    if (i == 1) names = table->rendezvous.names();
    event = judged.next(Verdict::Continue);
  }
  CHECK(event.kind == Kind::Finished);
  waits.finish();
  CHECK(names > 0);
  CHECK(table->rendezvous.names() == names);
}

TEST_CASE("a verdict that is missing, or that nobody waits for, is a mistake of the caller",
          "[api][trainable]") {
  fake::GangOfThreads context(std::make_shared<fake::GangTable>(), 0, 1);
  TrialSession session(context, {});
  session.start("body", [](Member& member) { member.report({}, ""); });
  CHECK_THROWS_AS(session.next(Verdict::Continue), std::logic_error);
  CHECK(session.next(std::nullopt).kind == Kind::Report);
  CHECK_THROWS_AS(session.next(std::nullopt), std::logic_error);
  CHECK(session.next(Verdict::Continue).kind == Kind::Finished);
  CHECK_THROWS_AS(session.start("body", [](Member&) {}), std::logic_error);
}

TEST_CASE("a session that is destroyed takes its function out of its report", "[api][trainable]") {
  fake::GangOfThreads context(std::make_shared<fake::GangTable>(), 0, 1);
  bool unwound = false;
  {
    TrialSession session(context, {});
    session.start("body", [&](Member& member) {
      struct Sign {
        bool& set;
        ~Sign() { set = true; }
      } sign{unwound};
      member.report({}, "");
    });
    session.next(std::nullopt);
  }
  CHECK(unwound);
}
