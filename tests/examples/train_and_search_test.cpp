#include <catch2/catch.hpp>

#include "example.hpp"

TEST_CASE("train_and_search prints what it says, privately and on a cluster",
          "[examples][train][tune]") {
  troupe::test::check_example({.name = "train_and_search"});
}
