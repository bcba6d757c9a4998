// What a task promises where processes end, with a file as the witness of what ran.
// tests/cli/witness_driver.cpp judges.
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "support/hosts.hpp"

using namespace troupe::test;

namespace {

/// Thousands of tasks, dozens of which end their processes. Of an even seed, half of the killers
/// are signals from elsewhere.
std::vector<std::string> killers(int retries, unsigned seed, const std::string& file) {
  return {TROUPE_TEST_WITNESS_DRIVER,
          "tasks",
          "3000",
          "30",
          std::to_string(retries),
          std::to_string(seed),
          file,
          seed % 2 == 0 ? "soon" : "at_once"};
}

std::string witness(const TemporaryFolder& folder, int retries, unsigned seed) {
  return folder.path() + "/ran-" + std::to_string(retries) + "-" + std::to_string(seed);
}

}  // namespace

TEST_CASE("no task runs too often or fails for another's death: through rings", "[cli][promise]") {
  TemporaryFolder folder;
  for (const int retries : {0, 3}) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
      const auto done = run(killers(retries, seed, witness(folder, retries, seed)),
                            {"TROUPE_ADDRESS="}, std::chrono::seconds(60));
      INFO("retries " << retries << "\n" << done.output);
      CHECK(done.exit_code == 0);
    }
  }
}

TEST_CASE("no task runs too often or fails for another's death: over TCP",
          "[cli][promise][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--no-node"});
  Child worker(
      scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus", "2"}),
      scene.far_environment);
  worker.wait_for_output("of the cluster at");
  for (const int retries : {0, 3}) {
    for (unsigned seed = 1; seed <= 2; ++seed) {
      const auto done = scene.drive(killers(retries, seed, witness(scene.near, retries, seed)));
      INFO("retries " << retries << "\n" << done.output);
      CHECK(done.exit_code == 0);
    }
  }
  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
  CHECK(worker.wait());
}

TEST_CASE("one worker process that does not start fails no task", "[cli][promise]") {
  TestCluster cluster(1);
  const auto file = cluster.folder() + "/failed";
  const auto done = run({TROUPE_TEST_WITNESS_DRIVER, "first_start", file}, cluster.environment(),
                        std::chrono::seconds(60));
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a task that waits for its argument is cancelled, and does not run", "[cli][promise]") {
  TemporaryFolder folder;
  const auto done =
      run({TROUPE_TEST_WITNESS_DRIVER, "cancel", folder.path() + "/ran"}, {"TROUPE_ADDRESS="});
  INFO(done.output);
  CHECK(done.exit_code == 0);
}
