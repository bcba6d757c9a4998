#include "values/spares.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <catch2/catch.hpp>

#include "values/few_records.hpp"

using namespace std::chrono_literals;
using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

TEST_CASE("a job takes its last spare that is ready, or else the last that will be",
          "[scheduler][spares]") {
  FewRecords records;
  Spares spares;
  auto& node = records.node();
  auto& mine = records.job();
  auto& other = records.job();
  auto& ready = records.process(mine, node, ProcessState::Idle);
  auto& starts = records.process(mine, node, ProcessState::Starting);
  auto& starts_too = records.process(mine, node, ProcessState::Starting);
  for (auto* process :
       {&ready, &starts, &starts_too, &records.process(other, node, ProcessState::Idle)})
    spares.add(*process, 1s);

  CHECK(spares.take(mine, node, 1) == &ready);
  CHECK_FALSE(Spares::is_spare(ready));
  CHECK(spares.take(mine, node, 1) == &starts_too);
  CHECK(spares.take(mine, node, 1) == &starts);
  CHECK(spares.take(mine, node, 1) == nullptr);
  CHECK(node.spares.size() == 1);
}

TEST_CASE("a job takes no spare of another node", "[scheduler][spares]") {
  FewRecords records;
  Spares spares;
  auto& job = records.job();
  auto& there = records.node();
  spares.add(records.process(job, there, ProcessState::Idle), 1s);
  CHECK(spares.take(job, records.node(), 1) == nullptr);
}

TEST_CASE("a job takes no spare that was started with other threads", "[scheduler][spares]") {
  FewRecords records;
  Spares spares;
  auto& job = records.job();
  auto& node = records.node();
  auto& two = records.process(job, node, ProcessState::Idle);
  two.threads = 2;
  auto& one = records.process(job, node, ProcessState::Idle);
  spares.add(two, 1s);
  spares.add(one, 2s);
  CHECK(spares.take(job, node, 3) == nullptr);
  CHECK(spares.take(job, node, 2) == &two);
  CHECK(spares.take(job, node, 2) == nullptr);
  CHECK(spares.take(job, node, 1) == &one);
}

TEST_CASE("those that have been idle for long are told of in the order in which they became so",
          "[scheduler][spares]") {
  FewRecords records;
  Spares spares;
  auto& job = records.job();
  auto& node = records.node();
  std::vector<Process*> idle;
  for (const auto since : {1s, 1s, 2s, 3s}) {
    idle.push_back(&records.process(job, node, ProcessState::Idle));
    spares.add(*idle.back(), since);
  }

  CHECK(spares.idle_since(0s).empty());
  CHECK(spares.idle_since(2s) == std::vector{idle[0], idle[1], idle[2]});
  spares.renew(*idle[1], 4s);
  CHECK(spares.idle_since(2s) == std::vector{idle[0], idle[2]});
  spares.remove(*idle[0]);
  spares.remove(*idle[0]);  // it is none any more
  CHECK(spares.idle_since(9s) == std::vector{idle[2], idle[3], idle[1]});
}

TEST_CASE("of too many spares the first goes that nobody needs", "[scheduler][spares]") {
  FewRecords records;
  Spares spares;
  auto& job = records.job();
  auto& node = records.node();
  std::vector<Process*> idle;
  for (int i = 0; i < 4; ++i) {
    idle.push_back(&records.process(job, node, ProcessState::Idle));
    spares.add(*idle.back(), 1s);
  }

  CHECK(Spares::surplus(node.spares, 4) == nullptr);
  CHECK(Spares::surplus(node.spares, 3) == idle[0]);
  idle[0]->values_held = true;
  CHECK(Spares::surplus(node.spares, 3) == nullptr);  // it counts as none of those that are kept
  CHECK(Spares::surplus(node.spares, 2) == idle[1]);
}

TEST_CASE("a spare that its node and the order of idleness do not agree on is found",
          "[scheduler][spares]") {
  FewRecords records;
  Spares spares, others;
  auto& job = records.job();
  auto& node = records.node();
  auto& process = records.process(job, node, ProcessState::Idle);
  spares.add(process, 1s);
  CHECK_FALSE(spares.broken_invariant(records.nodes()));
  CHECK(others.broken_invariant(records.nodes()));  // 1: it lacks the process
  CHECK(spares.broken_invariant({}));               // 1: the node is gone

  auto& elsewhere = records.node();
  process.node = &elsewhere;
  CHECK(spares.broken_invariant(records.nodes()));  // 2
  process.node = &node;
  CHECK_FALSE(spares.broken_invariant(records.nodes()));

  spares.add(records.process(job, node, ProcessState::Idle), 2s);
  process.idle_since = 3s;
  CHECK(spares.broken_invariant(records.nodes()));  // 3
}

TEST_CASE("spares agree with a list of them, whoever comes and goes",
          "[scheduler][spares][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  FewRecords records;
  Spares spares;
  std::vector<Job*> jobs;
  std::vector<Node*> nodes;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(&records.job());
    nodes.push_back(&records.node());
  }
  for (int i = 0; i < 20; ++i)
    records.process(*jobs[random() % 3], *nodes[random() % 3], ProcessState::Idle);
  std::vector<std::pair<Process*, TimePoint>> model;  // by when they became spares
  const auto forget = [&](const Process* process) {
    std::erase_if(model, [&](const auto& spare) { return spare.first == process; });
  };
  TimePoint now{};
  for (int i = 0; i < 400; ++i) {
    now += std::chrono::milliseconds{random() % 3};
    auto& process = records.processes()[random() % 20];
    const bool was_spare = Spares::is_spare(process);
    if (random() % 4 == 0) {
      const auto* taken = spares.take(*process.job, *process.node, 1);
      REQUIRE((taken != nullptr || !was_spare));
      forget(taken);
    } else if (random() % 3 == 0) {
      spares.remove(process);
      forget(&process);
    } else {
      was_spare ? spares.renew(process, now) : spares.add(process, now);
      forget(&process);
      model.emplace_back(&process, now);
    }
    const auto since = now - std::chrono::milliseconds{random() % 20};
    std::vector<Process*> expected;
    for (const auto& [spare, from] : model) {
      if (from <= since) expected.push_back(spare);
    }
    REQUIRE(spares.idle_since(since) == expected);
    REQUIRE(spares.broken_invariant(records.nodes()).value_or("") == "");
  }
}
