#include <algorithm>
#include <random>
#include <set>

#include <catch2/catch.hpp>

#include "store/catalog/writer_numbers.hpp"

using namespace troupe::store;

TEST_CASE("an object may come until it, or a later one of its writer, has come",
          "[store][catalog][numbers]") {
  WriterNumbers numbers;
  CHECK(numbers.may_come(5));
  numbers.on_create(5);
  CHECK_FALSE(numbers.may_come(5));
  CHECK_FALSE(numbers.may_come(4));
  CHECK(numbers.may_come(6));
  numbers.on_create(3);  // late
  CHECK_FALSE(numbers.may_come(5));
}

TEST_CASE("a free that was ahead of its create is told with it, once",
          "[store][catalog][numbers]") {
  WriterNumbers numbers;
  numbers.on_early_free(2, 10);
  numbers.on_early_free(4, 10);
  CHECK_FALSE(numbers.on_create(1));
  CHECK(numbers.on_create(2));
  CHECK_FALSE(numbers.on_create(2));
  CHECK_FALSE(numbers.on_create(5));  // passes 4 over
  CHECK(numbers.freed_early() == 0);
  CHECK_FALSE(numbers.on_create(4));
}

TEST_CASE("frees of objects that cannot come, and too many of them, are given up",
          "[store][catalog][numbers]") {
  WriterNumbers numbers;
  numbers.on_create(3);
  numbers.on_early_free(3, 2);
  CHECK(numbers.freed_early() == 0);
  for (std::uint64_t number = 4; number <= 6; ++number) numbers.on_early_free(number, 2);
  CHECK(numbers.freed_early() == 2);
  numbers.check();
}

TEST_CASE("early frees agree with a set, in whichever order events come",
          "[store][catalog][numbers][property]") {
  const auto seed = GENERATE(take(30, random(0u, 1u << 30)));
  CAPTURE(seed);
  std::mt19937 random(seed);
  WriterNumbers numbers;
  std::uint64_t last = 0;
  std::set<std::uint64_t> freed;
  for (int i = 0; i < 500; ++i) {
    const auto number = last + random() % 8;
    if (random() % 2 == 0) {
      numbers.on_early_free(number, 5);
      if (number > last && freed.size() < 5) freed.insert(number);
    } else {
      REQUIRE(numbers.on_create(number) == freed.contains(number));
      last = std::max(last, number);
      std::erase_if(freed, [&](std::uint64_t one) { return one <= last; });
    }
    numbers.check();
    REQUIRE(numbers.freed_early() == freed.size());
    REQUIRE_FALSE(numbers.may_come(last));
    REQUIRE(numbers.may_come(last + 1));
  }
}
