// Searches on a real cluster whose driver, head or nodes are killed, and that are taken up again.
#include <algorithm>
#include <csignal>
#include <optional>
#include <set>
#include <utility>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "hold.hpp"
#include "support/child.hpp"
#include "support/cluster.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::tune;

namespace {

/// `more`: of its environment.
test::Child driver_of(const test::TestCluster& cluster, const TemporaryFolder& folder,
                      const std::vector<std::string>& more = {}) {
  auto environment = cluster.environment();
  environment.insert(environment.end(), more.begin(), more.end());
  return test::Child({TROUPE_TEST_DRIVER, folder.path().string(), "promotion", "0", "--address",
                      cluster.address()},
                     environment);
}

std::filesystem::path run_of(const TemporaryFolder& folder) { return folder.path() / "run-1"; }

bool has_reported(const TemporaryFolder& folder, std::size_t count) {
  return test::eventually([&] {
    const auto file = run_of(folder) / "reports.jsonl";
    return std::filesystem::exists(file) && lines_of(file).size() >= count;
  });
}

/// All four CPUs of two nodes have a trial that waits before its third report: with 14 trials four are
/// promoted, and nothing else is left to run.
bool are_all_places_held(const TemporaryFolder& folder) {
  return test::eventually([&] {
    const auto file = run_of(folder) / "reports.jsonl";
    if (!std::filesystem::exists(file)) return false;
    return std::ranges::count_if(lines_of(file),
                                 [](const auto& line) { return line.at("t") == 2; }) == 4;
  });
}

std::size_t starts_in(const std::filesystem::path& run) {
  return std::filesystem::exists(run / "journal.jsonl") ? events_of(run, "started").size() : 0;
}

void kill(test::Child& child) {
  child.signal(SIGKILL);
  REQUIRE(child.wait());
}

/// The node's processes end with it.
void kill_node(test::TestCluster& cluster, std::size_t index) {
  REQUIRE(::kill(cluster.worker(index).agent(), SIGKILL) == 0);
  REQUIRE(cluster.worker(index).wait());
}

void check_end_of(test::Child& driver) {
  const auto status = driver.wait();
  INFO(driver.output());
  REQUIRE(status);
  CHECK(*status == 0);
}

/// The run is whole: each report counted once, no trial failed, and what each attempt trained goes on
/// from a checkpoint. -> how often its trials were started again since the cluster had lost them.
int check_whole(const TemporaryFolder& folder) {
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run-2"));
  const auto summary = summary_of(run_of(folder));
  REQUIRE(summary.at("trials").size() == 14);
  int finished = 0, restarts = 0;
  for (const auto& trial : summary.at("trials")) {
    const auto t = trial.at("t").get<std::int64_t>();
    // What it reports is the sum of so many steps: an attempt after the kill went on from the last
    // checkpoint, or from the start, but from nothing in between.
    const auto lr = trial.at("config").at("lr").get<double>();
    CHECK(trial.at("best").get<double>() == Approx(lr * static_cast<double>(t)));
    CHECK(trial.at("failures") == 0);
    finished += t == 9 ? 1 : 0;
    restarts += trial.at("restarts").get<int>();
  }
  CHECK(finished >= 1);
  std::set<std::pair<TrialId, std::int64_t>> seen;
  for (const auto& line : lines_of(run_of(folder) / "reports.jsonl")) {
    CHECK(seen.emplace(line.at("trial").get<TrialId>(), line.at("t").get<std::int64_t>()).second);
  }
  return restarts;
}

}  // namespace

TEST_CASE("a search on a cluster goes on after its driver or all of the cluster was killed",
          "[tune][resume][cluster]") {
  // As it begins, while trials are started, and when the first of them are promoted.
  const auto [reports, with_cluster] =
      GENERATE(std::pair<std::size_t, bool>{1, false}, std::pair<std::size_t, bool>{8, false},
               std::pair<std::size_t, bool>{8, true}, std::pair<std::size_t, bool>{16, false});
  CAPTURE(with_cluster, reports);
  const TemporaryFolder folder;
  const Hold hold(folder.path());
  std::optional<test::TestCluster> cluster(std::in_place, 2);
  {
    auto driver = driver_of(*cluster, folder);
    REQUIRE(has_reported(folder, reports));
    kill(driver);
  }
  if (with_cluster) {
    cluster.reset();
    cluster.emplace(2);
  }
  hold.release();
  auto driver = driver_of(*cluster, folder);
  check_end_of(driver);
  CHECK(check_whole(folder) == 0);
}

TEST_CASE("a search whose head is killed ends with that reason, and goes on under a new head",
          "[tune][resume][cluster]") {
  const bool by_folder = GENERATE(false, true);  // tune::resume(folder), or .resume
  CAPTURE(by_folder);
  const TemporaryFolder folder;
  const Hold hold(folder.path());
  std::optional<test::TestCluster> cluster(std::in_place, 2);
  {
    auto driver = driver_of(*cluster, folder);
    REQUIRE(has_reported(folder, 8));
    kill(cluster->head());
    check_end_of(driver);
    CHECK_THAT(driver.output(), Catch::Contains("the cluster is gone: "));
    for (std::size_t node = 0; node < cluster->workers(); ++node)
      CHECK(cluster->worker(node).wait());
    const auto mark = "XDG_STATE_HOME=" + cluster->folder();
    CHECK(test::eventually([&] { return test::processes_with(mark).empty(); }));
  }
  const auto summary = summary_of(run_of(folder));
  CHECK_THAT(summary.at("ended_early").get<std::string>(),
             Catch::StartsWith("the cluster is gone: "));
  for (const auto& trial : summary.at("trials")) {
    CHECK(trial.at("failures") == 0);
    CHECK(trial.at("restarts") == 0);
  }

  hold.release();
  cluster.emplace(2);
  const auto from = by_folder ? "RESUME_FOLDER=" + run_of(folder).string() : "RESUME_FOLDER=";
  auto driver = driver_of(*cluster, folder, {from});
  check_end_of(driver);
  CHECK_THAT(driver.output(), Catch::Contains("goes on with " + run_of(folder).string()));
  CHECK(check_whole(folder) == 0);
  CHECK(summary_of(run_of(folder)).at("ended_early").is_null());
}

/// The node, whose loss is heard of by other connections than that of the head.
TEST_CASE("no trial is at fault when the head is killed with the node that it has in its process",
          "[tune][resume][cluster]") {
  const TemporaryFolder folder;
  const Hold hold(folder.path());
  const test::TemporaryFolder state;
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + state.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  std::size_t started = 0;
  for (int killed = 0; killed < 3; ++killed) {
    test::Child head({TROUPE_PROGRAM, "head", "--port", "0", "--cpus", "1"}, environment);
    head.wait_for_output("token file:");
    std::string address;
    std::ifstream(state.path() + "/troupe/address") >> address;
    test::Child driver(
        {TROUPE_TEST_DRIVER, folder.path().string(), "promotion", "0", "--address", address},
        environment);
    if (killed == 0) REQUIRE(has_reported(folder, 5));
    REQUIRE(test::eventually([&] { return starts_in(run_of(folder)) > started; }));
    head.signal(SIGKILL);
    check_end_of(driver);
    CHECK_THAT(driver.output(), Catch::Contains("ended early: the cluster ") &&
                                    !Catch::Contains("was lost by the cluster"));
    const auto summary = summary_of(run_of(folder));
    for (const auto& trial : summary.at("trials")) {
      CHECK(trial.at("failures") == 0);
      CHECK(trial.at("restarts") == 0);
    }
    started = starts_in(run_of(folder));
    REQUIRE(head.wait());
    const auto mark = "XDG_STATE_HOME=" + state.path();
    CHECK(test::eventually([&] { return test::processes_with(mark).empty(); }));
  }
}

TEST_CASE("a search goes on without the node that is killed, and its trials do not fail",
          "[tune][resume][cluster]") {
  const TemporaryFolder folder;
  const Hold hold(folder.path());
  test::TestCluster cluster(2);
  auto driver = driver_of(cluster, folder);
  REQUIRE(are_all_places_held(folder));
  kill_node(cluster, 1);
  driver.wait_for_output("was lost by the cluster (attempt ");
  hold.release();
  check_end_of(driver);
  CHECK(check_whole(folder) > 0);
}

TEST_CASE("a search whose driver is killed after a node goes on with what is left of the cluster",
          "[tune][resume][cluster]") {
  const TemporaryFolder folder;
  const Hold hold(folder.path());
  test::TestCluster cluster(2);
  {
    auto driver = driver_of(cluster, folder);
    REQUIRE(are_all_places_held(folder));
    kill_node(cluster, 0);
    driver.wait_for_output("was lost by the cluster (attempt ");
    kill(driver);
  }
  hold.release();
  auto driver = driver_of(cluster, folder);
  check_end_of(driver);
  CHECK_THAT(driver.output(), Catch::Contains("goes on with " + run_of(folder).string()));
  CHECK(check_whole(folder) > 0);
}
