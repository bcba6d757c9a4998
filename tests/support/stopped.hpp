#pragma once

#include <csignal>

#include <sys/types.h>
#include <catch2/catch.hpp>

namespace troupe::test {

/// A process that stands still for as long as this lives.
class Stopped {
 public:
  explicit Stopped(pid_t process) : process_(process) { REQUIRE(::kill(process, SIGSTOP) == 0); }
  ~Stopped() { ::kill(process_, SIGCONT); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  pid_t process_;
};

}  // namespace troupe::test
