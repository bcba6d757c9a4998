#include <catch2/catch.hpp>

#include "example.hpp"

TEST_CASE("deepspeed prints what it says, privately and on a cluster", "[examples][train]") {
  troupe::test::check_example({.name = "train/deepspeed"});
}
