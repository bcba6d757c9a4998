#include <catch2/catch.hpp>

#include "example.hpp"

TEST_CASE("own_searcher prints what it says, privately and on a cluster", "[examples][tune]") {
  troupe::test::check_example({.name = "tune/own_searcher"});
}
