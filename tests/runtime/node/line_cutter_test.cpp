#include "node/output/line_cutter.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "node/output/output_budget.hpp"
#include "rounds.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;

TEST_CASE("lines are whole, whatever pieces they come in", "[node][output]") {
  LineCutter cutter;
  cutter.append("one\ntw");
  CHECK(cutter.take().text == "one\n");
  CHECK(cutter.take().empty());
  cutter.append("o\n\nthree");
  const auto lines = cutter.take();
  CHECK(lines.text == "two\n\n");
  CHECK(lines.begins == std::vector<std::uint64_t>{4, 8});
  cutter.cut();
  CHECK(cutter.take().text == "three\n");
  cutter.cut();
  CHECK(cutter.take().empty());
}

TEST_CASE("a line that is too long is cut, and nothing of it is lost", "[node][output]") {
  LineCutter cutter(100, 4);
  cutter.append("12345678");
  cutter.append("9\nab\n");
  const auto lines = cutter.take();
  CHECK(lines.text == "1234\n5678\n9\nab\n");
  CHECK(lines.begins == std::vector<std::uint64_t>{100, 104, 108, 110});
}

TEST_CASE("what is skipped takes the lines with it that it cuts through", "[node][output]") {
  LineCutter cutter;
  cutter.append("whole\nbegun");
  cutter.skip(100);
  cutter.append("rest of");
  cutter.append(" a line\nwhole again\n");
  const auto lines = cutter.take();
  CHECK(lines.text == "whole\nwhole again\n");
  CHECK(lines.left_out == 5 + 100 + 15);
  CHECK(lines.begins == std::vector<std::uint64_t>{0, 6 + 5 + 100 + 15});
}

TEST_CASE("every byte is in a line or counted as left out", "[node][output]") {
  const auto seed = troupe::test::first_seed();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  LineCutter cutter(0, 7);
  std::size_t given = 0, taken = 0;
  const auto take = [&] {
    const auto lines = cutter.take();
    const auto ends = std::ranges::count(lines.text, '\n');
    REQUIRE(lines.begins.size() == static_cast<std::size_t>(ends));
    REQUIRE(std::ranges::is_sorted(lines.begins));
    // A line that was cut has got its end here.
    for (std::size_t at = 0; at < lines.text.size();) {
      const auto end = lines.text.find('\n', at);
      REQUIRE(end != std::string::npos);
      REQUIRE(end - at <= 7);
      at = end + 1;
    }
    taken += std::ranges::count(lines.text, 'x') + lines.left_out;
  };
  for (int i = 0; i < 2000; ++i) {
    if (random() % 8 == 0) {
      const auto bytes = random() % 20;
      cutter.skip(bytes);
      given += bytes;
    } else {
      std::string piece(random() % 12, 'x');
      given += piece.size();
      cutter.append(piece);
      if (random() % 2 == 0) cutter.cut();
    }
    if (random() % 3 == 0) take();
  }
  cutter.cut();
  take();
  CHECK(taken == given);
}

TEST_CASE("a budget is there again with the next second", "[node][output]") {
  OutputBudget budget(100);
  OutputBudget::Clock::time_point now{1h};
  CHECK(budget.left(now) == 100);
  budget.use(30, now);
  CHECK(budget.left(now + 999ms) == 70);
  budget.use(500, now + 999ms);
  CHECK(budget.left(now + 999ms) == 0);
  CHECK(budget.left(now + 1s) == 100);
}

TEST_CASE("a reader that falls behind leaves out what is older than a second's worth",
          "[node][output]") {
  const auto planned = [](std::uint64_t unread, std::uint64_t left) {
    const auto plan = plan_read(unread, left, 100);
    return std::pair(plan.skip, plan.read);
  };
  CHECK(planned(0, 100) == std::pair(0UL, 0UL));
  CHECK(planned(100, 100) == std::pair(0UL, 100UL));
  CHECK(planned(50, 20) == std::pair(0UL, 20UL));
  CHECK(planned(5000, 20) == std::pair(0UL, 20UL));  // this second is over first
  CHECK(planned(5000, 0) == std::pair(0UL, 0UL));
  CHECK(planned(5000, 100) == std::pair(4900UL, 100UL));
}

}  // namespace
}  // namespace troupe::node
