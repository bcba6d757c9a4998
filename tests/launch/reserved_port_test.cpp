#include "host/reserved_port.hpp"

#include <set>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "os/unique_fd.hpp"

using namespace troupe::launch;

TEST_CASE("reserved ports differ, and a program may listen there", "[launch]") {
  const std::vector<ReservedPort> ports(50);
  std::set<int> numbers;
  for (const auto& port : ports) {
    CHECK(numbers.insert(port.number()).second);
    const troupe::os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(port.number());
    CHECK(::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
    CHECK(::listen(socket.get(), 1) == 0);
  }
}
