#include "session/output/line_merger.hpp"
#include "rounds.hpp"

#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using Time = LineMerger::Time;

constexpr Time kStart{1h};

OutputLine line(const std::string& text, std::uint64_t process) {
  return {
      .text = text, .process = ProcessId(process), .label = {}, .from = std::to_string(process)};
}

/// "text by 3 x2 of 1"
std::vector<std::string> texts(const std::vector<LineMerger::Merged>& merged) {
  std::vector<std::string> out;
  for (const auto& one : merged) {
    out.push_back(one.line.text + " by " + one.line.from);
    if (one.times > 1 || one.processes > 1)
      out.back() += " x" + std::to_string(one.times) + " of " + std::to_string(one.processes);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST_CASE("the first of equal lines is printed at once, others as a count after 3 s",
          "[runtime][output]") {
  LineMerger merger;
  CHECK(texts(merger.take(line("ready", 1), kStart)) == Texts{"ready by 1"});
  for (std::uint64_t process = 2; process <= 5; ++process)
    CHECK(merger.take(line("ready", process), kStart + 1s).empty());
  CHECK(merger.take(line("ready", 2), kStart + 2s).empty());
  CHECK(merger.due(kStart + 2999ms).empty());
  REQUIRE(merger.next() == kStart + 3s);
  CHECK(texts(merger.due(kStart + 3s)) == Texts{"ready by 2 x5 of 4"});
  CHECK(merger.due(kStart + 6s).empty());
  CHECK_FALSE(merger.next());
}

TEST_CASE("a line of several processes is counted with all that printed it", "[runtime][output]") {
  const auto labels = [](std::initializer_list<std::string> printed_by) {
    LineMerger merger;
    std::uint64_t process = 1;
    merger.take(line("ready", process), kStart);
    for (const auto& label : printed_by) {
      auto next = line("ready", ++process);
      next.label = label;
      merger.take(std::move(next), kStart);
    }
    const auto merged = merger.rest();
    REQUIRE(merged.size() == 1);
    return merged.front().labels;
  };
  CHECK(labels({"f", "f"}) == Texts{"f"});
  CHECK(labels({"g", "", "f", "g"}) == Texts{"f", "g"});
  CHECK(labels({"", ""}).empty());
  CHECK(labels({"a", "b", "c", "d"}) == Texts{"a", "b", "c", "d"});
  CHECK(labels({"a", "b", "c", "d", "e", "f"}) == Texts{"a", "b", "c", "d", "..."});
}

TEST_CASE("lines that differ, and those of one process, are printed as they come",
          "[runtime][output]") {
  LineMerger merger;
  CHECK(merger.take(line("a", 1), kStart).size() == 1);
  CHECK(merger.take(line("b", 2), kStart).size() == 1);
  for (int i = 0; i < 10; ++i) CHECK(merger.take(line("a", 1), kStart + 1s).size() == 1);
  CHECK(merger.due(kStart + 10s).empty());
}

TEST_CASE("what many print on and on appears once each 3 s", "[runtime][output]") {
  LineMerger merger;
  std::size_t printed = 0, counted = 0;
  for (int tenth = 0; tenth < 300; ++tenth) {
    for (std::uint64_t process = 1; process <= 4; ++process) {
      for (const auto& one : merger.take(line("step", process), kStart + tenth * 100ms)) {
        ++printed;
        counted += one.times;
      }
    }
  }
  for (const auto& one : merger.rest()) counted += one.times;
  CHECK(printed == 10);  // in 30 s
  CHECK(counted == 1200);
}

TEST_CASE("no line is lost, also where there are more than it remembers", "[runtime][output]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  LineMerger merger;
  std::size_t given = 0, counted = 0;
  const auto count = [&](const std::vector<LineMerger::Merged>& merged) {
    for (const auto& one : merged) counted += one.times;
  };
  auto now = kStart;
  for (int i = 0; i < 20'000; ++i) {
    now += std::chrono::milliseconds(random() % 4);
    count(merger.take(line(std::to_string(random() % 1500), random() % 3 + 1), now));
    ++given;
    if (random() % 10 == 0) count(merger.due(now));
  }
  count(merger.rest());
  CHECK(counted == given);
  CHECK_FALSE(merger.next());
}

}  // namespace
}  // namespace troupe::runtime
