#include "plan/gang_size.hpp"

#include <vector>

#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

using namespace troupe::launch;

TEST_CASE("a number of ranks is one number, two, or a rank for each GPU", "[launch]") {
  CHECK(parse_gang_size("4").least == 4);
  CHECK(parse_gang_size("4").most == 4);
  CHECK_FALSE(parse_gang_size("4").is_elastic());
  CHECK(parse_gang_size("2:8").least == 2);
  CHECK(parse_gang_size("2:8").most == 8);
  CHECK(parse_gang_size("2:8").is_elastic());
  CHECK(parse_gang_size("gpus").every_gpu);
}

TEST_CASE("what is no number of ranks is refused with what is one", "[launch]") {
  for (const auto* text :
       {"", "0", "-1", "four", "4 ", "8:2", "2:", ":2", "2:8:9", "1e3", "65537"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_gang_size(text), Catch::Contains("give 4, or 2:8"));
  }
  CHECK_THROWS_WITH(parse_gang_size("p"), Catch::Contains("it is '-n' here"));
}

TEST_CASE("an elastic gang asks for what has room, within its size", "[launch]") {
  const GangSize size{.least = 2, .most = 8};
  const auto asked = [&](int room, int per_node = 0) {
    return ranks_to_ask_for(size, per_node, room, {});
  };
  CHECK(asked(0) == 2);
  CHECK(asked(5) == 5);
  CHECK(asked(100) == 8);
  CHECK(asked(0, 3) == 3);
  CHECK(asked(100, 3) == 6);
}

TEST_CASE("a gang that was ended to grow asks for its goal at most", "[launch]") {
  const GangSize size{.least = 2, .most = 8};
  // Two gangs of 2, with room for 4 more: each has seen room for 6, and one of them is formed first.
  const SizeBefore before{.ranks = 2, .goal = 6};
  CHECK(ranks_to_ask_for(size, 0, 8, before) == 6);
  CHECK(ranks_to_ask_for(size, 0, 8 - 6, before) == 2);
  CHECK(ranks_to_ask_for(size, 4, 8, before) == 4);
}

TEST_CASE("a size that is not to be had is followed by that of the gang before, and by halves",
          "[launch]") {
  const GangSize size{.least = 3, .most = 64};
  const auto all = [&](int ranks, int per_node, const SizeBefore& before) {
    std::vector<int> sizes;
    while (ranks > least_ranks(size, per_node))
      sizes.push_back(ranks = ranks_after(ranks, size, per_node, before));
    return sizes;
  };
  CHECK(all(64, 0, {}) == std::vector{32, 16, 8, 4, 3});
  CHECK(all(64, 4, {}) == std::vector{32, 16, 8, 4});
  CHECK(all(64, 0, {.ranks = 50}) == std::vector{50, 25, 12, 6, 3});
  CHECK(all(64, 0, {.ranks = 20}) == std::vector{32, 20, 10, 5, 3});
}

TEST_CASE("a gang asks once what the one before held is free, and its goal has room", "[launch]") {
  CHECK(ranks_to_await({}) == 0);
  CHECK(ranks_to_await({.ranks = 4}) == 4);
  CHECK(ranks_to_await({.ranks = 2, .goal = 4}) == 4);
  CHECK(ranks_to_await({.ranks = 4, .goal = 2}) == 4);
}
