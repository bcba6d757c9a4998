#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"
#include "support/limited_cgroup.hpp"

using namespace troupe::test;
using nlohmann::json;

namespace {

constexpr const char* kSaid = "its node offers 1, because a task asks for one CPU";

std::size_t times_said(const std::string& output) {
  std::size_t times = 0;
  for (auto at = output.find(kSaid); at != std::string::npos; at = output.find(kSaid, at + 1))
    ++times;
  return times;
}

}  // namespace

TEST_CASE("a program under a quota of half a CPU runs a task in its private cluster, which says so",
          "[cli][cpus]") {
  const LimitedCgroup quota(half_a_cpu());
  if (!quota.is_there()) return;
  const TemporaryFolder folder;
  const auto done = run(quota.within({TROUPE_TEST_DRIVER, "task"}),
                        {"XDG_STATE_HOME=" + folder.path(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(times_said(done.output) == 1);
}

TEST_CASE("a worker under a quota of half a CPU offers one and says so, or what it is told",
          "[cli][cluster][cpus]") {
  const LimitedCgroup quota(half_a_cpu());
  if (!quota.is_there()) return;
  TestCluster cluster(0);
  std::vector<Child> workers;
  const auto add = [&](std::vector<std::string> more) {
    std::vector<std::string> command{TROUPE_PROGRAM, "worker", "--head", cluster.address()};
    command.insert(command.end(), more.begin(), more.end());
    workers.emplace_back(quota.within(std::move(command)), cluster.environment());
    workers.back().wait_for_output("of the cluster at");
  };
  add({"--name", "a", "--node-host", "127.0.0.1"});
  CHECK(times_said(workers.back().output()) == 1);
  add({"--name", "b", "--cpus", "0.5"});
  CHECK(times_said(workers.back().output()) == 0);
  const auto status = json::parse(cluster.status());
  REQUIRE(status.at("nodes").size() == 2);
  for (const auto& node : status.at("nodes"))
    CHECK(node.at("total").at("cpu") == (node.at("name") == "a" ? 1 : 0.5));
  const auto done = cluster.run_driver("task");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  for (auto& worker : workers) CHECK(worker.wait());
  CHECK(cluster.head().wait());
}
