// docs/debugging.md names these tests; its program is debugging.cpp.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

const std::vector<std::string> kPrivate{"TROUPE_ADDRESS=", "TROUPE_TOKEN="};

/// A debugger that does these commands, one after the other.
std::vector<std::string> gdb(const std::vector<std::string>& commands) {
  std::vector<std::string> command{"gdb", "-nx", "-batch"};
  for (const auto& text : commands) command.insert(command.end(), {"-ex", text});
  return command;
}

/// A container may lack gdb, or the right to trace processes.
bool can_debug() {
  auto command = gdb({"run"});
  command.insert(command.end(), {"--args", "/bin/true"});
  const auto tried = run(std::move(command), kPrivate);
  const bool can = tried.output.find("exited normally") != std::string::npos;
  if (!can) WARN("skipped: gdb is missing, or may not trace processes here");
  return can;
}

/// Why no core file would come into the folder of a process that dies; empty: one would.
std::string why_no_core_file() {
  std::ifstream file("/proc/sys/kernel/core_pattern");
  std::string pattern;
  if (!std::getline(file, pattern) || pattern.empty()) return "the kernel writes no core files";
  if (pattern.starts_with('|')) return "the kernel hands core files to a program: " + pattern;
  if (pattern.find('/') != std::string::npos) return "core files go elsewhere: " + pattern;
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  return limit.rlim_max == RLIM_INFINITY ? "" : "core files have a hard limit here";
}

/// The limit that children of this process have, until the end of the object.
class CoreLimit {
 public:
  explicit CoreLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_CORE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ok_ = ::setrlimit(RLIMIT_CORE, &limit) == 0;
  }
  ~CoreLimit() { ::setrlimit(RLIMIT_CORE, &before_); }
  CoreLimit(const CoreLimit&) = delete;
  CoreLimit& operator=(const CoreLimit&) = delete;
  bool ok() const { return ok_; }

 private:
  rlimit before_{};
  bool ok_ = false;
};

}  // namespace

TEST_CASE("gdb that follows children stops in the first worker process of a private cluster",
          "[docs][debugging]") {
  if (!can_debug()) return;
  auto command = gdb(
      {"set follow-fork-mode child", "break mean", "run", "backtrace", "print sum", "continue"});
  command.insert(command.end(), {"--args", TROUPE_DEBUGGING, "task"});
  const auto done = run(std::move(command), kPrivate, std::chrono::seconds(60));
  INFO(done.output);
  CHECK_THAT(done.output, Contains("hit Breakpoint 1") && Contains("run_worker"));
  CHECK_THAT(done.output, Contains("\n3\n"));  // The driver, which gdb has left, has its result.
}

TEST_CASE("gdb attaches to a worker process by the number that it prints", "[docs][debugging]") {
  if (!can_debug()) return;
  Child driver({TROUPE_DEBUGGING, "wait"}, kPrivate);
  driver.wait_for_output("waits for a debugger");
  auto command = gdb({"break mean", "frame function wait_for_debugger", "set var go_on = true",
                      "continue", "delete", "detach"});
  command.insert(command.end(), {"-p", std::to_string(number_after(driver.output(), "process"))});
  const auto attached = run(std::move(command), kPrivate, std::chrono::seconds(60));
  INFO(attached.output);
  CHECK_THAT(attached.output, Contains("hit Breakpoint 1"));
  CHECK(driver.wait() == 0);
  CHECK_THAT(driver.output(), Contains("\n3\n"));
}

namespace {

/// Of the core file that a worker process of a driver leaves in the folder of that.
Finished backtrace_of_crash() {
  const TemporaryFolder folder;
  const auto died = run({"sh", "-c", R"(cd "$1" && ulimit -c unlimited && exec "$2" crash)", "sh",
                         folder.path(), TROUPE_DEBUGGING},
                        kPrivate);
  INFO(died.output);
  CHECK(died.exit_code == 1);
  CHECK_THAT(died.output, Contains("Assertion `!values.empty()' failed") &&
                              Contains("was killed by signal 6 (Aborted)"));
  std::vector<std::string> cores;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    cores.push_back(entry.path());
  REQUIRE(cores.size() == 1);
  auto command = gdb({"backtrace"});
  command.insert(command.end(), {TROUPE_DEBUGGING, cores.front()});
  return run(std::move(command), kPrivate, std::chrono::seconds(60));
}

bool is_cut_short(const std::string& opened) {
  return opened.find("has a segment extending past end of file") != std::string::npos;
}

}  // namespace

TEST_CASE("gdb opens the core file of a worker process, in the folder of its driver",
          "[docs][debugging]") {
  if (!can_debug()) return;
  if (const auto why = why_no_core_file(); !why.empty()) {
    WARN("skipped: " << why);
    return;
  }
  auto opened = backtrace_of_crash();
  // Where its group is frozen while it dumps its memory, the kernel cuts the file short.
  for (int i = 0; i < 20 && is_cut_short(opened.output); ++i) opened = backtrace_of_crash();
  INFO(opened.output);
  CHECK_THAT(opened.output, Contains("terminated with signal SIGABRT") &&
                                Contains("mean (values=") && Contains("run_worker"));
}

TEST_CASE("worker processes have the limit for core files of their driver, or of their node",
          "[docs][debugging]") {
  const std::vector<std::string> without{
      "sh", "-c", R"(ulimit -S -c 0 && exec "$@")", "sh", TROUPE_DEBUGGING, "limit"};
  CHECK(printed_by(without, kPrivate) == "0\n");
  const CoreLimit limit(1 << 20);
  if (!limit.ok()) {
    WARN("skipped: this process may not have core files of 1 MiB");
    return;
  }
  CHECK(printed_by({TROUPE_DEBUGGING, "limit"}, kPrivate) == "1048576\n");
  TestCluster cluster(1);
  auto there = without;
  there.insert(there.end(), {"--address", cluster.address()});
  CHECK(printed_by(there, cluster.environment()) == "1048576\n");
}
