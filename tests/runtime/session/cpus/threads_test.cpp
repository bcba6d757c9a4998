#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>
#include <catch2/catch.hpp>

#include <troupe/troupe.hpp>

#include "guard.hpp"
#include "libraries.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> kVariables{"OMP_NUM_THREADS", "MKL_NUM_THREADS",
                                          "OPENBLAS_NUM_THREADS"};

std::string variable(const std::string& name) {
  const auto* value = std::getenv(name.c_str());
  return value != nullptr ? value : "unset";
}

/// "2 2 2: 2 2 2": of OpenMP, MKL and OpenBLAS, and of each variable.
std::string threads() {
  auto text = std::to_string(most_threads()) + " " + std::to_string(told_mkl()) + " " +
              std::to_string(told_open_blas()) + ":";
  for (const auto& name : kVariables) text += " " + variable(name);
  return text;
}
/// Of a program that is started from here.
std::string threads_of_a_child() {
  auto* shell = ::popen("printf %s \"$OMP_NUM_THREADS\"", "r");
  char text[16] = {};
  if (::fgets(text, sizeof text, shell) == nullptr) text[0] = 0;
  ::pclose(shell);
  return text;
}

struct Holder {
  std::string threads() const { return ::threads(); }
};

/// Of whoever runs the tests.
void forget_variables() {
  for (const auto& name : kVariables) ::unsetenv(name.c_str());
}

}  // namespace

TEST_CASE("libraries in a task have a thread for each CPU that it asked for",
          "[runtime][session][threads]") {
  forget_variables();
  const auto before = most_threads();
  const auto cluster = init({.cpus = 3});
  CHECK(task<threads>().get(kGuard) == "1 1 1: 1 1 1");
  CHECK(with({.cpus = 2}).task<threads>().get(kGuard) == "2 2 2: 2 2 2");
  CHECK(with({.cpus = 2}).task<team_size>().get(kGuard) == 2);
  CHECK(with({.cpus = 2}).task<threads_of_a_child>().get(kGuard) == "2");
  CHECK(with({.cpus = 0.5}).task<threads>().get(kGuard) == "1 1 1: 1 1 1");
  CHECK(task<threads>().get(kGuard) == "1 1 1: 1 1 1");  // not in the process that has two
  CHECK(most_threads() == before);
  CHECK(variable("OMP_NUM_THREADS") == "unset");
}

TEST_CASE("libraries in an actor or a rank have a thread for each CPU that it asked for, or one",
          "[runtime][session][threads]") {
  forget_variables();
  const auto cluster = init({.cpus = 6});
  CHECK(spawn<Holder>().call<&Holder::threads>().get(kGuard) == "1 1 1: 1 1 1");
  CHECK(with({.cpus = 2}).spawn<Holder>().call<&Holder::threads>().get(kGuard) == "2 2 2: 2 2 2");
  const auto ranks = gang<Holder>({.size = 2, .each = {.cpus = 2}});
  for (const auto& rank : ranks.all<&Holder::threads>()) CHECK(rank.get(kGuard) == "2 2 2: 2 2 2");
}

TEST_CASE("a library whose variable the user has set keeps that, and others follow the CPUs",
          "[runtime][session][threads]") {
  forget_variables();
  ::setenv("OPENBLAS_NUM_THREADS", "5", 1);
  const auto cluster = init({.cpus = 2});
  CHECK(with({.cpus = 2}).task<threads>().get(kGuard) == "2 2 0: 2 2 5");
  forget_variables();
}

// Run by the next one, with OMP_NUM_THREADS=3 from the beginning, as OpenMP reads it only then.
TEST_CASE("a program that was started with three threads", "[.started-with-three]") {
  const auto cluster = init({.cpus = 6});
  const std::string as_set = "3 0 0: 3 unset unset";
  CHECK(task<threads>().get(kGuard) == as_set);
  CHECK(with({.cpus = 2}).task<threads>().get(kGuard) == as_set);
  CHECK(spawn<Holder>().call<&Holder::threads>().get(kGuard) == as_set);
  const auto ranks = gang<Holder>({.size = 2, .each = {.cpus = 2}});
  for (const auto& rank : ranks.all<&Holder::threads>()) CHECK(rank.get(kGuard) == as_set);
}

TEST_CASE("OMP_NUM_THREADS that the user has set stays as it is everywhere",
          "[runtime][session][threads]") {
  forget_variables();
  // The file itself: /proc/self/exe would be the shell's.
  char self[4096] = {};
  REQUIRE(::readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  const auto command =
      "OMP_NUM_THREADS=3 '" + std::string(self) + "' '[.started-with-three]' --warn NoTests";
  CHECK(std::system(command.c_str()) == 0);
}
