// Sweeps that end before their trials do: by their user, with their cluster, with its head.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "../support/temporary_folder.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

/// A sweep of gangs, all of which have reported and wait.
Child waiting_sweep(const TestCluster& cluster, const TemporaryFolder& folder) {
  auto driver = cluster.driver(folder.path(), {"many"});
  driver.wait_for_output("trial 0 started");
  driver.wait_for_output("trial 1 started");
  const auto reports = [&] {
    const auto journal = troupe::tune::content_of(folder.path() + "/run-1/journal.jsonl");
    const auto first = journal.find(R"("event":"reported")");
    return first != std::string::npos &&
           journal.find(R"("event":"reported")", first + 1) != std::string::npos;
  };
  REQUIRE(eventually(reports));
  return driver;
}

/// Nobody is to blame for what did not end by itself, in the journal and in what the driver prints.
void check_end(Child& driver, const TemporaryFolder& folder, int exit_code,
               const std::string& why) {
  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK((WIFEXITED(*status) && WEXITSTATUS(*status) == exit_code));
  CHECK_THAT(driver.output(), Contains("ended early: " + why));
  for (const auto* trial : {"trial 0: ", "trial 1: ", "trial 2: "}) {
    CHECK_THAT(
        driver.output(),
        Contains(trial + std::string("stopped, failures 0, restarts 0, the run ended: ") + why));
  }
  const auto journal = troupe::tune::content_of(folder.path() + "/run-1/journal.jsonl");
  CHECK_THAT(journal, Contains(R"("fault":"ended")"));
  CHECK_THAT(journal, !Contains(R"("fault":"trial")") && !Contains(R"("fault":"system")"));
}

}  // namespace

TEST_CASE("a sweep that its user ends says so, and blames no trial", "[tune][cluster][interrupt]") {
  TestCluster cluster(1, 4);
  const TemporaryFolder folder;
  auto driver = waiting_sweep(cluster, folder);
  driver.signal(SIGINT);
  check_end(driver, folder, 128 + SIGINT, "ended by the user (SIGINT)");
}

TEST_CASE("a program with three searches ends where Ctrl-C ends the first, and begins no other",
          "[tune][cluster][interrupt]") {
  TestCluster cluster(1);
  const TemporaryFolder folder;
  auto driver = cluster.driver(folder.path(), {"three"});
  REQUIRE(eventually([&] { return std::filesystem::exists(folder.path() + "/rank-0/waits"); }));
  driver.signal(SIGINT);
  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK((WIFEXITED(*status) && WEXITSTATUS(*status) == 1));
  CHECK_THAT(driver.output(), Contains("search 1: best trial 0: accuracy 3") &&
                                  Contains("to go on with it: the same program with .resume") &&
                                  Contains("driver: tune: this search does not begin, since "
                                           "Ctrl-C (SIGINT) came during a search before it"));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/2"));

  std::ofstream(folder.path() + "/ends") << "yes";
  auto again = cluster.driver(folder.path(), {"three"});
  const auto ended = again.wait();
  INFO(again.output());
  REQUIRE(ended);
  CHECK(*ended == 0);
  CHECK_THAT(again.output(), Contains("goes on with " + folder.path() + "/1/run-1") &&
                                 Contains("search 1: best trial 0: accuracy 5") &&
                                 Contains("search 3: best trial 0: accuracy 5"));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/1/run-2"));
}

TEST_CASE("a sweep whose cluster is stopped says so and returns what it has",
          "[tune][cluster][failure]") {
  TestCluster cluster(1, 4);
  const TemporaryFolder folder;
  auto driver = waiting_sweep(cluster, folder);
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  check_end(driver, folder, 125, "the cluster was stopped: asked by `troupe stop`");
  CHECK(cluster.worker(0).wait());
  CHECK(cluster.head().wait());
}

TEST_CASE("a sweep whose head is killed says so and returns what it has",
          "[tune][cluster][failure]") {
  TestCluster cluster(1, 4);
  const TemporaryFolder folder;
  auto driver = waiting_sweep(cluster, folder);
  cluster.head().signal(SIGKILL);
  check_end(driver, folder, 125, "the cluster is gone: ");
  CHECK(cluster.worker(0).wait());
  CHECK(cluster.head().wait());
}
