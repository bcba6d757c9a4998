// The list of what there are logs of.
#include <csignal>

#include <catch2/catch.hpp>

#include "eventually.hpp"
#include "stopped.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;

namespace {

Finished listed_logs(const TestCluster& cluster) {
  return run({TROUPE_PROGRAM, "logs"}, cluster.environment(), kGuard, Streams::Apart);
}

}  // namespace

TEST_CASE(
    "the list of logs lacks what a node that stands still has, names it, and ends with exit code 1",
    "[cli][cluster][logs]") {
  TestCluster cluster(2);
  CHECK(listed_logs(cluster).exit_code == 0);
  const auto listed = [&] {
    const Stopped silent(cluster.worker(1).agent());
    return listed_logs(cluster);
  }();
  CHECK(listed.exit_code == 1);
  CHECK_THAT(listed.errors,
             Catch::Contains("troupe: node w2 has not answered: its lines are missing\n"));
  CHECK_THAT(listed.output, Catch::Contains(" on node 1 (w1)\n"));
}

TEST_CASE("the list of logs gives as its example a job that has printed something",
          "[cli][cluster][logs]") {
  TestCluster cluster(1);
  CHECK(cluster.run_driver("task").exit_code == 0);  // job 1, whose task prints nothing
  const auto has = [&](const std::string& words) {
    return eventually([&] {
      return listed_logs(cluster).output.find("known by their numbers" + words +
                                              ", for as long\n") != std::string::npos;
    });
  };
  CHECK(has(""));
  auto first = cluster.driver("holds_tasks");
  CHECK(has(", as in `troupe logs job 2`"));
  auto second = cluster.driver("holds_tasks");
  CHECK(has(", as in `troupe logs job 3`"));
  first.signal(SIGKILL);  // job 3 goes on
  CHECK(has(", as in `troupe logs job 2`"));
  second.signal(SIGKILL);
}
