#include "values/cpu_loans.hpp"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "values/few_records.hpp"

using namespace std::chrono_literals;
using namespace troupe::scheduler;
using namespace troupe::scheduler::test;

namespace {

const auto kOneCpu = Amount::whole(1);

struct Lenders {
  FewRecords records;
  CpuLoans loans;
  Job& job = records.job();
  Node& node = records.node();

  Process& process() { return process_on(node); }
  Process& process_on(Node& home) {
    auto& process = records.process(job, home);
    process.held.resources = {{"cpu", 1}};
    return process;
  }
  /// That waits for its CPU since then.
  Process& resuming(TimePoint since) {
    auto& process = this->process();
    loans.lend(process);
    loans.unblock(process, since);
    return process;
  }
  std::string wrong() const { return loans.broken_invariant(records.nodes()).value_or("nothing"); }
};

}  // namespace

TEST_CASE("a process that waits has lent the CPU that it holds", "[scheduler][loans]") {
  Lenders lenders;
  auto& process = lenders.process();
  CHECK(lenders.loans.lend(process) == kOneCpu);
  CHECK(process.loan.wait() == Wait::Blocked);
  CHECK(process.loan.lent() == kOneCpu);
  CHECK(lenders.node.cpu_lines.empty());

  CHECK_FALSE(lenders.loans.unblock(process, 1s));
  CHECK(process.loan.wait() == Wait::Resuming);
  CHECK(lenders.node.cpu_lines.next() == &process);
  CHECK(lenders.wrong() == "nothing");
  CHECK(lenders.loans.end(process));
  CHECK(lenders.node.cpu_lines.empty());
  CHECK(process.loan.lent().is_zero());
  CHECK_FALSE(lenders.loans.end(process));
}

TEST_CASE("a process that held no CPU, or waits for nothing, runs on at once",
          "[scheduler][loans]") {
  Lenders lenders;
  auto& process = lenders.process();
  CHECK(lenders.loans.unblock(process, 1s));
  process.held.clear();
  CHECK(lenders.loans.lend(process).is_zero());
  CHECK(lenders.loans.unblock(process, 1s));
  CHECK(process.loan.wait() == Wait::Runs);
  CHECK(lenders.wrong() == "nothing");
}

TEST_CASE("who resumes gets the next CPU before who owes one, and each line by who came first",
          "[scheduler][loans]") {
  Lenders lenders;
  auto& early = lenders.resuming(1s);
  auto& later = lenders.resuming(2s);
  CHECK(lenders.loans.run_in_debt(2s) == std::vector{&early, &later});
  auto& last = lenders.resuming(3s);
  for (auto* next : {&last, &early, &later}) {
    CHECK(lenders.node.cpu_lines.next() == next);
    lenders.loans.end(*next);
  }
  CHECK(lenders.node.cpu_lines.next() == nullptr);
}

TEST_CASE("only who has resumed for long enough runs on in debt", "[scheduler][loans]") {
  Lenders lenders;
  auto& early = lenders.resuming(1s);
  auto& later = lenders.resuming(2s);
  CHECK(lenders.loans.run_in_debt(1s - 1ns).empty());
  CHECK(lenders.loans.run_in_debt(1s) == std::vector{&early});
  CHECK(early.loan.wait() == Wait::Owing);
  CHECK(later.loan.wait() == Wait::Resuming);
  CHECK(early.loan.lent() == kOneCpu);
  CHECK(lenders.loans.unblock(early, 2s));  // it runs
  CHECK(lenders.wrong() == "nothing");
}

TEST_CASE("who waits again while it owes gets back what it lent at first", "[scheduler][loans]") {
  Lenders lenders;
  auto& process = lenders.resuming(1s);
  lenders.loans.run_in_debt(1s);
  process.held.clear();
  lenders.loans.block_in_debt(process);
  CHECK(process.loan.wait() == Wait::Blocked);
  CHECK(lenders.node.cpu_lines.empty());
  CHECK_FALSE(lenders.loans.unblock(process, 2s));
  CHECK(process.loan.lent() == kOneCpu);
  CHECK(lenders.wrong() == "nothing");
}

TEST_CASE("lines that do not agree with the processes are found", "[scheduler][loans]") {
  Lenders lenders;
  auto& process = lenders.resuming(1s);
  CHECK(lenders.wrong() == "nothing");
  CHECK(lenders.loans.broken_invariant({}));                    // 3
  CHECK(CpuLoans{}.broken_invariant(lenders.records.nodes()));  // 3
  const auto lines = std::exchange(lenders.node.cpu_lines, {});
  CHECK(lenders.wrong() != "nothing");  // 1: it is in no line
  lenders.records.node().cpu_lines = lines;
  CHECK(lenders.wrong() != "nothing");  // 1: it is in the line of another node
  lenders.node.cpu_lines = lines;
  CHECK(lenders.wrong() != "nothing");  // 1: it is in two lines
  process.loan = {};
  CHECK(lenders.wrong() != "nothing");  // 1: it runs and is in a line
}

TEST_CASE("loans agree with a table, whoever waits, resumes, owes and ends",
          "[scheduler][loans][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random{seed};
  Lenders lenders;
  auto& loans = lenders.loans;
  std::vector<Node*> nodes{&lenders.node, &lenders.records.node()};
  for (int i = 0; i < 8; ++i) lenders.process_on(*nodes[random() % 2]);
  std::map<Process*, std::pair<Wait, TimePoint>> model;  // of those that do not just run
  TimePoint now{};
  for (int i = 0; i < 400; ++i) {
    now += std::chrono::milliseconds{random() % 3};
    auto& process = lenders.records.processes()[random() % 8];
    const auto wait = model.contains(&process) ? model[&process].first : Wait::Runs;
    REQUIRE(process.loan.wait() == wait);
    if (random() % 6 == 0) {
      REQUIRE(loans.end(process) == (wait != Wait::Runs));
      model.erase(&process);
    } else if (random() % 6 == 0) {
      const auto since = now - 4ms;
      for (auto* indebted : loans.run_in_debt(since)) {
        REQUIRE(model[indebted].first == Wait::Resuming);
        REQUIRE(model[indebted].second <= since);
        model[indebted].first = Wait::Owing;
      }
      for (const auto& [other, at] : model)
        REQUIRE((at.first != Wait::Resuming || at.second > since));
    } else if (wait == Wait::Blocked) {
      REQUIRE_FALSE(loans.unblock(process, now));
      model[&process] = {Wait::Resuming, now};
    } else if (wait == Wait::Owing) {
      loans.block_in_debt(process);
      model[&process].first = Wait::Blocked;
    } else if (wait == Wait::Runs) {
      REQUIRE(loans.lend(process) == kOneCpu);
      model[&process].first = Wait::Blocked;
    }
    REQUIRE(lenders.wrong() == "nothing");
  }
}
