#include "host/network_interface.hpp"

#include <catch2/catch.hpp>

using namespace troupe::launch;

TEST_CASE("the network interface of an address is found, and none of what no interface has",
          "[launch]") {
  CHECK(interface_of("127.0.0.1") == "lo");
  CHECK(interface_of("192.0.2.1").empty());  // of TEST-NET-1, which is for documentation
  CHECK(interface_of("localhost").empty());
  CHECK(interface_of("").empty());
}
