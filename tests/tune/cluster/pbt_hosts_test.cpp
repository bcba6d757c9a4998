#include <csignal>
#include <filesystem>

#include <catch2/catch.hpp>

#include "support/hosts.hpp"
#include "support/population_files.hpp"

using namespace troupe::test;
using namespace troupe;
using Catch::Contains;

namespace {

/// Two hosts with a node each, of two cores. To the second one the folder of the run's results is a
/// file system of its own.
struct UnsharedScene : Scene {
  TemporaryFolder folder;

  std::string storage() const { return folder.path() + "/storage"; }
  std::filesystem::path results() const { return storage() + "/run-1"; }
  Child start_far(const std::string& command = "exec \"$0\" \"$@\"") const {
    std::filesystem::create_directories(storage());
    Child worker(
        hosts.on_second({"unshare", "--mount", "sh", "-c",
                         "mount -t tmpfs tmpfs " + storage() + " && " + command, TROUPE_PROGRAM,
                         "worker", "--head", address(), "--cpus", "2", "--name", "far"}),
        far_environment);
    worker.wait_for_output("of the cluster at");
    return worker;
  }
  Child start_driver(int members, int ranks, int hold) const {
    return Child(
        hosts.on_first({TROUPE_TEST_DRIVER, folder.path(), std::to_string(members),
                        std::to_string(ranks), std::to_string(hold), "--address", address()}),
        near_environment);
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

void check_ended(Child& driver, const UnsharedScene& scene, std::size_t members) {
  const auto status = driver.wait(std::chrono::seconds(30));
  UNSCOPED_INFO(driver.output());
  REQUIRE(status);
  CHECK(*status == 0);
  const auto trials = tune::summary_of(scene.results()).at("trials");
  CHECK(trials.size() == members);
  for (const auto& trial : trials) {
    CHECK(trial.at("status") == "terminated");
    CHECK(trial.at("t") == 8);
    CHECK(trial.at("failures") == 0);
  }
}

void stop(const UnsharedScene& scene, Child& head) {
  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
  CHECK(eventually([&] { return processes_with("XDG_STATE_HOME=" + scene.far.path()).empty(); }));
}

}  // namespace

TEST_CASE(
    "where hosts share no folder, members take over each other's weights bit for bit all the same",
    "[tune][pbt][cluster][network]") {
  const UnsharedScene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "2"});
  auto far = scene.start_far();
  auto driver = scene.start_driver(6, 1, -1);
  check_ended(driver, scene, 6);
  const auto restored = tune::check_what_was_restored(scene.results(), 1);
  CHECK(restored.of_others > 0);
  CHECK(restored.across_nodes > 0);
  const std::string notice =
      "does not share the folder " + scene.results().string() + " with this program";
  CHECK(count(driver.output(), notice) == 2);  // in a line, and in the summary
  CHECK(count(driver.output(), "  note: node 2 " + notice) == 1);
  stop(scene, head);
}

TEST_CASE(
    "where hosts share no folder, the ranks of a member on both of them read the donor's weights",
    "[tune][pbt][cluster][network]") {
  const UnsharedScene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "2"});
  auto far = scene.start_far();
  auto driver = scene.start_driver(4, 2, -1);
  check_ended(driver, scene, 4);
  CHECK(tune::check_what_was_restored(scene.results(), 2).of_others > 0);
  const auto reports = tune::lines_of(scene.results() / "reports.jsonl");
  CHECK(std::ranges::any_of(reports, [](const auto& report) {
    return tune::metric_of(report, "node") != tune::metric_of(report, "last_node");
  }));
  stop(scene, head);
}

TEST_CASE(
    "where nodes share a folder that the program does not see, the ranks of a member on both of "
    "them read the donor's "
    "weights",
    "[tune][pbt][cluster][network]") {
  const UnsharedScene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--no-node"});
  auto far = scene.start_far(R"(("$0" "$@" &) && exec "$0" "$@")");
  far.wait_for_output("node 2 of the cluster at");
  INFO(far.output());
  auto driver = scene.start_driver(4, 2, -1);
  check_ended(driver, scene, 4);
  CHECK(tune::check_what_was_restored(scene.results(), 2).of_others > 0);
  stop(scene, head);
}

TEST_CASE("members whose checkpoints were on a host that is lost go on from others",
          "[tune][pbt][cluster][network]") {
  const UnsharedScene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "2"});
  auto far = scene.start_far();
  auto driver = scene.start_driver(6, 1, 2);
  driver.wait_for_output("takes over", std::chrono::seconds(20));
  REQUIRE(eventually([&] { return std::filesystem::exists(scene.folder.path() + "/held"); },
                     std::chrono::seconds(20)));
  REQUIRE(::kill(far.agent(), SIGKILL) == 0);
  check_ended(driver, scene, 6);
  tune::check_what_was_restored(scene.results(), 1);
  CHECK_THAT(driver.output(), Contains("was lost by the cluster"));
  CHECK_THAT(driver.output(), Contains("lost its checkpoint"));
  stop(scene, head);
}
