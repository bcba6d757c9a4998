// Who holds the CPUs of a node.
#include <csignal>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "eventually.hpp"
#include "stopped.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;
using nlohmann::json;

namespace {

std::string status_text(const TestCluster& cluster) {
  const auto shown = run({TROUPE_PROGRAM, "status"}, cluster.environment(), kGuard, Streams::Apart);
  CHECK(shown.exit_code == 0);
  return shown.output;
}

bool shows(const TestCluster& cluster, const std::string& line) {
  return status_text(cluster).find("\n      " + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("status says who holds the CPUs of a node: actors, ranks and tasks, alike in one line",
          "[cli][cluster][status]") {
  TestCluster cluster(1, 5);
  auto ranks = cluster.driver("hold_gang");  // two
  ranks.wait_for_output("placed");
  auto tasks =
      cluster.driver("holds_tasks");  // one that runs, and one that waits and has lent its CPU
  REQUIRE(eventually(
      [&] { return shows(cluster, "held: 1 CPU by 1 task {anonymous}::lasts (job 2)"); }));
  auto actors = cluster.driver("use_all");  // four, of which two have no place
  CHECK(eventually(
      [&] { return shows(cluster, "held: 2 CPUs by 2 actors {anonymous}::Holder (job 3)"); }));
  const auto status = json::parse(cluster.status());
  const auto gang = status.at("gangs").at(0).at("gang").dump();
  CHECK_THAT(status_text(cluster),
             Catch::Contains("\n      held: 2 CPUs by 2 ranks of gang " + gang + " (job 1)\n"));
  double cpus = 0;
  for (const auto& process : status.at("processes")) cpus += process.at("held").value("cpu", 0.0);
  CHECK(cpus == 5);
  for (auto* child : {&actors, &tasks, &ranks}) child->signal(SIGKILL);
  CHECK(eventually([&] { return status_text(cluster).find("held: ") == std::string::npos; }));
}

TEST_CASE(
    "status tells who holds the CPUs of a node that stands still, without what tasks run there",
    "[cli][cluster][status]") {
  TestCluster cluster(1, 2);
  auto tasks = cluster.driver("holds_tasks");
  REQUIRE(eventually(
      [&] { return shows(cluster, "held: 1 CPU by 1 task {anonymous}::lasts (job 1)"); }));
  {
    const Stopped silent(cluster.worker(0).agent());
    CHECK(shows(cluster, "held: 1 CPU by 1 task process (job 1)"));
  }
  tasks.signal(SIGKILL);
}
