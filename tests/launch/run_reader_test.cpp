#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/child.hpp"

using namespace troupe::test;
using namespace std::chrono_literals;

/// `troupe run` whose output nobody reads: a pager, or a terminal that somebody has stopped.
namespace {

/// Its output is read by Child::wait() alone.
Child start_unread(std::vector<std::string> arguments, const TemporaryFolder& folder) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run", "--env", "F=" + folder.path()});
  return Child(std::move(arguments), {"TROUPE_ADDRESS=", "TROUPE_TOKEN="});
}

/// For a shell: prints for ever, and tells its process id.
constexpr const char* kPrints = "echo $$ > $F/pid.new; mv $F/pid.new $F/pid; exec yes";

/// For a shell: until that one waits in its write, as nobody takes what it prints.
constexpr const char* kUntilItStands =
    "until [ -s $F/pid ]; do sleep 0.02; done; io=/proc/$(cat $F/pid)/io; "
    "until a=$(grep ^wchar $io); sleep 0.5; "
    "[ \"$a\" = \"$(grep ^wchar $io)\" -a \"$a\" != 'wchar: 0' ]; do :; done; ";

bool comes(const std::string& file) {
  return eventually([&] { return std::filesystem::exists(file); }, kGuard);
}

pid_t pid_of_printer(const TemporaryFolder& folder) {
  pid_t pid = 0;
  std::ifstream(folder.path() + "/pid") >> pid;
  REQUIRE(pid > 0);
  return pid;
}

}  // namespace

TEST_CASE("a rank that fails ends the others though nobody reads the output", "[launch]") {
  const TemporaryFolder folder;
  const auto summary = folder.path() + "/summary.json";
  auto child = start_unread({"-n", "2", "--summary", summary, "--", "sh", "-c",
                             "if [ $RANK = 0 ]; then " + std::string(kPrints) + "; fi; " +
                                 kUntilItStands + "echo last words; touch $F/fails; exit 7"},
                            folder);
  REQUIRE(comes(folder.path() + "/fails"));
  const auto pid = pid_of_printer(folder);
  CHECK(eventually([pid] { return !is_alive(pid); }, kGuard));
  CHECK(is_alive(child.pid()));  // it waits for whoever is to read the rest
  const auto status = child.wait(kGuard);
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 7);
  const auto& output = child.output();
  const auto end = output.find("troupe run: after");
  REQUIRE(end != std::string::npos);
  CHECK_THAT(output.substr(end), Catch::Contains("rank 1 on node") &&
                                     Catch::Contains("ended with exit code 7; the other one was "
                                                     "ended; its last lines:\n    last words\n"));
  CHECK(output.rfind("[0] y\n") < end);
  CHECK(output.find("[1] last words\n") < end);
  const auto failure = nlohmann::json::parse(std::ifstream(summary)).at("failure");
  CHECK(failure.at("rank") == 1);
  CHECK(failure.at("last_lines") == nlohmann::json{"last words"});
}

TEST_CASE("Ctrl-C ends a run though nobody reads its output", "[launch]") {
  const TemporaryFolder folder;
  auto child = start_unread({"-n", "2", "--", "sh", "-c",
                             "if [ $RANK = 0 ]; then " + std::string(kPrints) + "; fi; " +
                                 kUntilItStands + "touch $F/stands; sleep 300"},
                            folder);
  REQUIRE(comes(folder.path() + "/stands"));
  const auto pid = pid_of_printer(folder);
  child.signal(SIGINT);
  CHECK(eventually([pid] { return !is_alive(pid); }, kGuard));
  CHECK(eventually([&] { return !is_alive(child.pid()); }, kGuard));
  const auto status = child.wait(kGuard);
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 130);
}

TEST_CASE("a gang is formed anew though nobody reads the output", "[launch]") {
  const TemporaryFolder folder;
  auto child = start_unread({"--max-restarts", "1", "--", "sh", "-c",
                             "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then seq 1 100000; echo no "
                             ">&2; exit 3; fi; touch $F/again; echo again"},
                            folder);
  CHECK(comes(folder.path() + "/again"));
  CHECK(child.wait(kGuard) == 0);
  const auto& output = child.output();
  const auto anew = output.find("the gang is formed anew");
  REQUIRE(anew != std::string::npos);
  CHECK(output.find("[0] 100000\n") < anew);
  CHECK(output.find("[0] no\n") < anew);
  CHECK(output.find("[0] again\n") > anew);
}
