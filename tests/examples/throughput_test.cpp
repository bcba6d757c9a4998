#include <catch2/catch.hpp>

#include "example.hpp"

TEST_CASE("throughput finds a faster way, privately and on a cluster", "[examples][tune]") {
  troupe::test::check_example({.name = "tune/throughput"});
}
