// A program whose user may have no more processes and threads.
#include <iostream>
#include <string>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

namespace {

/// The number of a user that has no processes, not of another run of this test either.
unsigned nobody_else() { return 20'000 + static_cast<unsigned>(getpid()) % 40'000; }

/// As a user of its own, who may have so many processes and threads: root has no limit.
Finished run_limited(unsigned user, int limit, const std::vector<std::string>& command,
                     const std::vector<std::string>& environment) {
  std::vector<std::string> all{"setpriv", "--reuid", std::to_string(user), "--clear-groups",
                               "prlimit"};
  all.push_back("--nproc=" + std::to_string(limit));
  all.insert(all.end(), command.begin(), command.end());
  return run(std::move(all), environment);
}

}  // namespace

TEST_CASE("a program ends, and says why, whatever its limit of processes", "[cli]") {
  const TemporaryFolder folder;
  const auto user = nobody_else();
  CAPTURE(user);
  const auto environment = std::vector<std::string>{"XDG_STATE_HOME=" + folder.path(),
                                                    "TROUPE_ADDRESS=", "TROUPE_TOKEN="};
  const auto may_be =
      ::geteuid() == 0 && ::chown(folder.path().c_str(), user, 0) == 0 &&
      run_limited(user, 1000, {TROUPE_TEST_DRIVER, "task"}, environment).exit_code == 0;
  if (!may_be) {
    std::cout << "skipped: programs cannot be run as another user here\n";
    return;
  }
  // One by one until there is enough: how much that is depends on the machine's libraries and cores.
  int limit = 2;
  std::string said;
  for (bool done = false; !done && limit <= 100; ++limit) {
    INFO("a limit of " << limit);
    const auto program = run_limited(user, limit, {TROUPE_TEST_DRIVER, "task"}, environment);
    INFO(program.output);
    done = program.exit_code == 0;
    said = program.output;
    CHECK(program.exit_code < 128);  // by no signal
    if (!done) CHECK_FALSE(program.output.empty());
  }
  INFO("the last one said: " << said);
  CHECK(limit > 3);     // some were refused
  CHECK(limit <= 100);  // and one was enough
}
