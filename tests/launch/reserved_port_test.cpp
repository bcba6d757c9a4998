#include "host/reserved_port.hpp"

#include <set>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

TEST_CASE("no other process gets a port while it is reserved", "[launch]") {
  const std::vector<ReservedPort> ports(100);
  std::set<int> numbers;
  for (const auto& port : ports) numbers.insert(port.number());
  // Without a reservation it would get one of them within a few hundred tries.
  const auto gets_one = [&numbers]() noexcept {
    for (int tried = 0; tried < 4000; ++tried) {
      if (numbers.contains(ReservedPort().number())) return true;
    }
    return false;
  };
  const auto other = ::fork();
  REQUIRE(other >= 0);
  if (other == 0) ::_exit(gets_one() ? 1 : 0);
  int status = -1;
  REQUIRE(::waitpid(other, &status, 0) == other);
  CHECK(status == 0);
}
