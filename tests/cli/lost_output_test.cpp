// Commands whose standard output or error is closed, or takes no more.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;

namespace {

/// Through a shell, which redirects its standard descriptors.
Child start_troupe(const std::string& arguments, const std::vector<std::string>& environment) {
  return Child({"sh", "-c", std::string("exec '") + TROUPE_PROGRAM + "' " + arguments},
               environment);
}

int exit_code(Child& child) {
  const auto status = child.wait();
  REQUIRE(status);
  return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
}

/// A head with a node, with these redirections.
class QuietHead {
 public:
  explicit QuietHead(const std::string& redirections)
      : head_(start_troupe("head --port 0 " + redirections, environment(""))) {}

  /// It takes a node and tells of it, and ends in order.
  void check_that_it_goes_on() {
    const auto file = folder_.path() + "/troupe/address";
    REQUIRE(eventually([&] { return std::ifstream(file).peek() != EOF; }, kGuard));
    std::string address;
    std::getline(std::ifstream(file) >> std::ws, address);
    {
      Child worker({TROUPE_PROGRAM, "worker", "--head", address}, environment(address));
      worker.wait_for_output("of the cluster at");
      worker.signal(SIGTERM);
      CHECK(exit_code(worker) == 0);
    }
    CHECK(run({TROUPE_PROGRAM, "status"}, environment(address)).exit_code == 0);
    head_.signal(SIGTERM);
    CHECK(exit_code(head_) == 0);
  }
  void wait_for_node() {
    CHECK(eventually([&] {
      return run({TROUPE_PROGRAM, "status"}, environment("")).output.find("ready") !=
             std::string::npos;
    }));
  }

 private:
  std::vector<std::string> environment(const std::string& address) const {
    return {"XDG_STATE_HOME=" + folder_.path(), "TROUPE_TOKEN=", "TROUPE_ADDRESS=" + address};
  }

  TemporaryFolder folder_;
  Child head_;
};

}  // namespace

TEST_CASE("a head goes on where its lines cannot be written", "[cli][cluster]") {
  for (const std::string redirections :
       {"2>/dev/full", ">/dev/full", "2>&-", ">&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
    INFO(redirections);
    QuietHead(redirections).check_that_it_goes_on();
  }
}

TEST_CASE("a command whose output is lost fails and says why", "[cli][cluster]") {
  const TestCluster cluster(1);
  REQUIRE(run({TROUPE_TEST_OUTPUT_DRIVER, "speaks"}, cluster.environment()).exit_code >= 0);
  for (const std::string command :
       {"status >/dev/full", "status >&-", "status --json >/dev/full", "status --json >&-",
        "logs job 1 >/dev/full", "logs job 1 >&-", "list nodes >/dev/full", "list nodes --json >&-",
        "doctor >/dev/full", "completion bash >/dev/full", "man >&-", "--help >/dev/full",
        "logs --help >&-", "--version >/dev/full"}) {
    INFO(command);
    auto child = start_troupe(command, cluster.environment());
    CHECK(exit_code(child) == 1);
    CHECK_THAT(child.output(), Catch::Contains("cannot write"));
  }
}

TEST_CASE("a head goes on when its terminal is closed", "[cli][cluster]") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  QuietHead head(std::string(">") + ::ptsname(terminal) + " 2>&1");
  head.wait_for_node();
  ::close(terminal);
  head.check_that_it_goes_on();
}

TEST_CASE("a head goes on when nobody reads its pipe any more", "[cli][cluster]") {
  const TemporaryFolder folder;
  const auto pipe = folder.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  QuietHead head(">" + pipe + " 2>&1");
  head.wait_for_node();
  ::close(reader);
  head.check_that_it_goes_on();
}

TEST_CASE("a worker ends in order where its lines cannot be written", "[cli][cluster]") {
  const TestCluster cluster(0);
  for (const std::string redirections :
       {"2>/dev/full", ">/dev/full", "2>&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
    INFO(redirections);
    auto worker = start_troupe("worker " + redirections, cluster.environment());
    REQUIRE(eventually([&] { return cluster.status().find("\"ready\"") != std::string::npos; }));
    worker.signal(SIGTERM);
    CHECK(exit_code(worker) == 0);
    REQUIRE(eventually([&] { return cluster.status().find("\"ready\"") == std::string::npos; }));
  }
}
