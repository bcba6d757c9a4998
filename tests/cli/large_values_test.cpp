// Large values, short tasks and lost nodes between two hosts, each with an object store of its own.
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/hosts.hpp"

using namespace troupe::test;

namespace {

constexpr std::chrono::seconds kLimit{90};

std::vector<std::string> node(const char* label, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TROUPE_PROGRAM);
  arguments.insert(arguments.end(), {"--object-store-memory", "128MiB", "--cpus", "2", "--label", label});
  return arguments;
}

/// The head with a node on the first host; a node on the second.
struct TwoNodes : Scene {
  Child head{hosts.on_first(node("host=near", {"head", "--host", "10.77.0.1", "--port", "0"})), near_environment};

  Child second() {
    head.wait_for_output("token file:");
    copy_token();
    Child worker(hosts.on_second(node("host=far", {"worker", "--head", address()})), far_environment);
    worker.wait_for_output("of the cluster at");
    return worker;
  }
  Finished drive(const char* what) const {
    return run(hosts.on_first({TROUPE_TEST_LARGE_DRIVER, what, "--address", address()}), near_environment, kLimit);
  }
};

}  // namespace

TEST_CASE("large values cross hosts, are let go on both, and short tasks stand in line there",
          "[cli][network][store]") {
  TwoNodes scene;
  if (!can_make_hosts(scene)) return;
  const auto worker = scene.second();
  const auto driver = scene.drive("across");
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
}

TEST_CASE("a driver on a host without a node has large values too", "[cli][network][store]") {
  TwoNodes scene;
  if (!can_make_hosts(scene)) return;
  scene.head.wait_for_output("token file:");
  scene.copy_token();
  const auto driver = run(scene.hosts.on_second({TROUPE_TEST_LARGE_DRIVER, "from_afar", "--address", scene.address()}),
                          scene.far_environment, kLimit);
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
}

TEST_CASE("a value whose node was killed is lost, and said to be", "[cli][network][store][failure]") {
  TwoNodes scene;
  if (!can_make_hosts(scene)) return;
  auto worker = scene.second();
  Child driver(scene.hosts.on_first({TROUPE_TEST_LARGE_DRIVER, "lost", "--address", scene.address()}),
               scene.near_environment);
  driver.wait_for_output("made");
  worker.signal(SIGKILL);
  driver.wait_for_output("ObjectLost: ");
  CHECK(driver.wait() == 0);
}
