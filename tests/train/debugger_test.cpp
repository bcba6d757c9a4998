// A rank that waits for a debugger. The debugger is the kernel's: this process traces the rank.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <torch/utils.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/terminal/terminal.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using namespace std::chrono_literals;

namespace {

int begin_and_sum(train::Context& ctx, const int& begin) {
  std::cerr << "rank " << ctx.rank() << " has begun" << std::endl;
  std::vector<std::int32_t> sum{begin + ctx.rank()};
  ctx.communicator().all_reduce(std::span(sum));
  return sum[0];
}

/// Whether this process may trace one that lets it.
bool may_trace() {
  const auto child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    ::pause();
  }
  const bool may = ::ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0 || errno != EPERM;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return may;
}

/// Attaches to the process that `terminal` names, until its function has begun; its end detaches.
/// -> what went wrong
std::string trace(const Terminal& terminal) {
  try {
    terminal.await("gdb -p ");
    const auto line = terminal.lines("gdb -p ").at(0);
    const int process = std::stoi(line.substr(line.find("gdb -p ") + std::strlen("gdb -p ")));
    if (::ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) return std::strerror(errno);
    terminal.await("rank 1 has begun");
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a rank waits for a debugger, says how to attach one, and goes on with it",
          "[train][run][debugger]") {
  if (!may_trace()) {
    WARN("skipped: this machine does not let a process trace another one");
    return;
  }
  const Scratch folder;
  const Terminal terminal{(folder.path() / "terminal").string()};
  std::string failed;
  std::optional<int> sum;
  {
    const StandardError redirected(terminal.file);
    std::thread debugger([&] { failed = trace(terminal); });
    try {
      sum = train::run<begin_and_sum>(5, {.workers = 2,
                                          .where = train::Where::ThisNode,
                                          .debugger = {.rank = 1, .wait = 240s}})
                .value;
    } catch (const Error&) {
      // The terminal says why; the sum is not there.
    }
    debugger.join();
  }
  CHECK(failed == "");
  CHECK(sum == 11);
  const auto lines = terminal.lines(" for a debugger ");
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Contains("rank 1 of 2 waits 240 s for a debugger") &&
                           Contains("-ex \"break '(anonymous namespace)::begin_and_sum'\""));
}

TEST_CASE("a rank to which no debugger comes ends the run", "[train][run][debugger]") {
  const train::RunOptions options{
      .workers = 2, .where = train::Where::ThisNode, .debugger = {.rank = 1, .wait = 300ms}};
  CHECK_THROWS_WITH(train::run<begin_and_sum>(5, options),
                    Contains("no debugger was attached to rank 1") && Contains("within 0.3 s"));
}

TEST_CASE("a run without its debugger's rank is refused", "[train][run][debugger]") {
  CHECK_THROWS_WITH(train::run<begin_and_sum>(5, {.workers = 2, .debugger = {.rank = 2}}),
                    Contains("RunOptions::debugger.rank is 2; the run has ranks 0 to 1"));
  CHECK_THROWS_WITH(
      train::run<begin_and_sum>(5, {.where = train::Where::InProcess, .debugger = {.rank = 0}}),
      Contains("start the program under a debugger"));
  CHECK_THROWS_WITH(
      train::run<begin_and_sum>(5, {.workers = 2, .debugger = {.rank = 0, .wait = 0ms}}),
      Contains("RunOptions::debugger.wait is 0 ms"));
}
