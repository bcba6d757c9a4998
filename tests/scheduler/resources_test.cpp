#include <limits>
#include <stdexcept>

#include <catch2/catch.hpp>

#include <troupe/scheduler/resources.hpp>

using namespace troupe::scheduler;

TEST_CASE("thirds of a GPU, taken and given back, leave exactly one GPU",
          "[scheduler][resources]") {
  const Resources third{{"gpu", 1.0 / 3}};
  Resources left{{"gpu", 1}};
  for (int i = 0; i < 3; ++i) left -= third;
  CHECK(left.of("gpu") == Amount::units(0.0001));
  for (int i = 0; i < 3; ++i) left += third;
  CHECK(left == Resources{{"gpu", 1}});
}

TEST_CASE("an absent amount is zero, and a zero is absent", "[scheduler][resources]") {
  CHECK(Resources{{"cpu", 1}, {"gpu", 0}} == Resources{{"cpu", 1}});
  CHECK(Resources{{"cpu", 0}}.empty());
  CHECK(Resources{}.of("disk").is_zero());
}

TEST_CASE("what is missing is told by name and amount", "[scheduler][resources]") {
  const Resources have{{"cpu", 8}, {"disk", 1}};
  CHECK(have.missing({{"cpu", 9}, {"disk", 1}, {"tape", 2}}) == Resources{{"cpu", 1}, {"tape", 2}});
  CHECK(have.missing({{"cpu", 8}}).empty());
  CHECK(to_string(have) == "cpu 8, disk 1");
  CHECK(to_string(Resources{}) == "nothing");
}

TEST_CASE("an amount that makes no sense throws, naming it", "[scheduler][resources]") {
  CHECK_THROWS_AS(Amount::units(-0.5), std::invalid_argument);
  CHECK_THROWS_AS(Amount::units(std::numeric_limits<double>::infinity()), std::invalid_argument);
  CHECK_THROWS_WITH(Amount::units(1e13), Catch::Contains("10000000000000"));
}
