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

void check_through_rings(unsigned seed) {
  TemporaryFolder folder;
  for (const int retries : {0, 3}) {
    const auto done =
        run(killers(retries, seed, witness(folder, retries, seed)), {"TROUPE_ADDRESS="});
    INFO("retries " << retries << "\n" << done.output);
    CHECK(done.exit_code == 0);
  }
}

/// Runs what a driver does on one host whose tasks and actors are on another one.
template <class Drive>
void over_tcp(Drive drive) {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--no-node"});
  Child worker(
      scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus", "2"}),
      scene.far_environment);
  worker.wait_for_output("of the cluster at");
  drive(scene);
  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
  CHECK(worker.wait());
}

void check_over_tcp(unsigned seed) {
  over_tcp([seed](Scene& scene) {
    for (const int retries : {0, 3}) {
      const auto done = scene.drive(killers(retries, seed, witness(scene.near, retries, seed)));
      INFO("retries " << retries << "\n" << done.output);
      CHECK(done.exit_code == 0);
    }
  });
}

}  // namespace

TEST_CASE("no task runs too often or fails for another's death: through rings", "[cli][promise]") {
  check_through_rings(2);
}

TEST_CASE("no task runs too often or fails for another's death: over TCP",
          "[cli][promise][network]") {
  check_over_tcp(2);
}

TEST_CASE("the calls that an actor has finished before it ends are answered over TCP, too",
          "[cli][promise][network]") {
  over_tcp([](Scene& scene) {
    const auto done = scene.drive({TROUPE_TEST_WITNESS_DRIVER, "actors", "30"});
    INFO(done.output);
    CHECK(done.exit_code == 0);
  });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // for which one seed is enough
TEST_CASE("no task runs too often or fails for another's death: through rings, seed 1",
          "[cli][promise]") {
  check_through_rings(1);
}

TEST_CASE("no task runs too often or fails for another's death: through rings, seed 3",
          "[cli][promise]") {
  check_through_rings(3);
}

TEST_CASE("no task runs too often or fails for another's death: through rings, seed 4",
          "[cli][promise]") {
  check_through_rings(4);
}

TEST_CASE("no task runs too often or fails for another's death: over TCP, seed 1",
          "[cli][promise][network]") {
  check_over_tcp(1);
}
#endif

TEST_CASE("one worker process that does not start fails no task", "[cli][promise]") {
  TestCluster cluster(1);
  const auto file = cluster.folder() + "/failed";
  const auto done = run({TROUPE_TEST_WITNESS_DRIVER, "first_start", file}, cluster.environment());
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
