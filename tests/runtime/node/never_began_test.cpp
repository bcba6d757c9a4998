#include "node/spawn/never_began.hpp"

#include <catch2/catch.hpp>

namespace troupe::node {
namespace {

using namespace std::chrono_literals;

constexpr int kReturned = 0;  // as of waitpid
constexpr int kThree = 3 << 8;

Program program_of(config::Audience audience) {
  Program program;
  program.path = "/bin/p";
  program.audience = audience;
  return program;
}

}  // namespace

TEST_CASE("who calls the C++ API is told what to do about a program that did not call init",
          "[node][zygote]") {
  const auto program = program_of(config::Audience::Api);
  CHECK_THAT(
      ended_before_init(program, "process 3", kReturned),
      Catch::StartsWith("process 3 ended with exit code 0 before it called troupe::init; ") &&
          Catch::EndsWith("call troupe::init there too, before main() returns"));
  CHECK(ended_before_init(program, "process 3", kThree) ==
        "process 3 ended with exit code 3 before it called troupe::init");
  CHECK(took_too_long(program, 20ms) ==
        "did not call troupe::init within 20 ms of its start; call it early in main(), before long "
        "work");
  CHECK_THAT(executed_anew(program, "2 threads (a, b)"),
             Catch::StartsWith("the program /bin/p cannot fork, as it has 2 threads (a, b); ") &&
                 Catch::EndsWith("Start threads and use CUDA after troupe::init, not before"));
}

TEST_CASE("who is at a command line is told nothing about C++", "[node][zygote]") {
  const auto program = program_of(config::Audience::CommandLine);
  for (const auto& told :
       {ended_before_init(program, "process 3", kReturned), took_too_long(program, 20ms),
        executed_anew(program, "2 threads (a, b)")}) {
    CHECK_THAT(told, !Catch::Contains("::") && !Catch::Contains("main()"));
  }
  CHECK(ended_before_init(program, "process 3", kThree) ==
        "process 3 ended with exit code 3 before it was ready");
}

}  // namespace troupe::node
