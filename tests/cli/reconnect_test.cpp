// What holds between two processes that live, whatever becomes of the connections between them.
#include <string>

#include <catch2/catch.hpp>

#include "support/hosts.hpp"

using namespace troupe::test;

namespace {

/// A node on each of the two hosts.
struct BothHosts : Scene {
  Child head;
  Child worker;

  BothHosts() : head(start_head({"--cpus", "2", "--label", "host=near"})), worker(start_worker()) {
    worker.wait_for_output("of the cluster at");
  }
  Child start_worker() const {
    return Child(hosts.on_second({TROUPE_PROGRAM, "worker", "--head", address(), "--cpus", "2",
                                  "--label", "host=far"}),
                 far_environment);
  }
  void stop() {
    CHECK(run(hosts.on_first({TROUPE_PROGRAM, "stop"}), near_environment).exit_code == 0);
    CHECK(head.wait());
    CHECK(worker.wait());
  }
};

bool can_cut_connections() {
  const bool can = TwoHosts().ok() && run({"ss", "-V"}).exit_code == 0;
  if (!can) WARN("skipped: network namespaces and ss -K need root and iproute2");
  return can;
}

void check_calls(const char* seed) {
  if (!can_cut_connections()) return;
  BothHosts scene;
  const TemporaryFolder folder;
  const auto done =
      scene.drive({TROUPE_TEST_RECONNECT_DRIVER, "calls", "1500", seed, folder.path()});
  INFO(done.output);
  CHECK(done.exit_code == 0);
  scene.stop();
}

}  // namespace

TEST_CASE(
    "a connection that breaks between two living processes loses no ref and no call under way",
    "[cli][reconnect][network]") {
  if (!can_cut_connections()) return;
  BothHosts scene;
  const auto done = scene.drive({TROUPE_TEST_RECONNECT_DRIVER, "refs"});
  INFO(done.output);
  CHECK(done.exit_code == 0);
  scene.stop();
}

TEST_CASE("each call runs once and in order, however often connections break",
          "[cli][reconnect][network]") {
  check_calls("1");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // for which one seed is enough
TEST_CASE("each call runs once and in order, however often connections break: seed 2",
          "[cli][reconnect][network]") {
  check_calls("2");
}

TEST_CASE("each call runs once and in order, however often connections break: seed 3",
          "[cli][reconnect][network]") {
  check_calls("3");
}
#endif
