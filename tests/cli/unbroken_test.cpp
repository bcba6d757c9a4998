// What the connection between a node and its head may do while both live, and what it may not hide.
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <catch2/catch.hpp>

#include "guard.hpp"
#include "support/cluster.hpp"
#include "support/cut_proxy.hpp"

using namespace troupe::test;

namespace {

/// A head, and a node that reaches it through a proxy.
struct FarNode {
  TestCluster cluster{0};
  CutProxy proxy{cluster.address()};
  Child worker{
      {TROUPE_PROGRAM, "worker", "--head", proxy.address(), "--name", "far", "--cpus", "2"},
      cluster.environment()};

  FarNode() { worker.wait_for_output("node 1 of the cluster"); }
};

/// This port of ::1. It refuses connections; from listen() on it takes them and says nothing.
class SilentPort {
 public:
  explicit SilentPort(std::uint16_t port)
      : socket_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    address.sin6_port = htons(port);
    ok_ = ::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~SilentPort() { ::close(socket_); }
  SilentPort(const SilentPort&) = delete;

  bool ok() const { return ok_; }
  void listen() const { REQUIRE(::listen(socket_, 16) == 0); }
  bool was_called() const { return ::accept(socket_, nullptr, nullptr) >= 0 || errno != EAGAIN; }

 private:
  int socket_;
  bool ok_ = false;
};

/// How often it stands there.
std::size_t count_of(const std::string& text, const std::string& output) {
  std::size_t count = 0;
  for (auto at = output.find(text); at != std::string::npos; at = output.find(text, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("a connection that breaks between a node and its head loses no task, actor or line",
          "[cli][returns]") {
  FarNode scene;
  Child driver({TROUPE_TEST_LIVENESS_DRIVER, "counts", "--address", scene.cluster.address()},
               scene.cluster.environment());
  constexpr std::size_t kCuts = 6;
  for (std::size_t cuts = 1; cuts <= kCuts; ++cuts) {
    driver.wait_for_output("round " + std::to_string(10 * cuts) + "\n");
    REQUIRE(scene.proxy.cut() == 1);
    REQUIRE(eventually([&] {
      auto& head = scene.cluster.head();
      head.wait(std::chrono::milliseconds(20));  // reads what it has printed
      return count_of("node 1 (far) has connected again", head.output()) == cuts;
    }));
  }
  driver.signal(SIGUSR1);
  driver.wait_for_output("the same process");
  const auto status = driver.wait();
  REQUIRE(status);
  INFO(driver.output());
  CHECK(WEXITSTATUS(*status) == 0);
  const auto rounds = number_after(driver.output(), "rounds");
  CHECK(rounds >= static_cast<int>(10 * kCuts));
  std::size_t at = 0;
  for (int i = 1; i <= rounds && at != std::string::npos; ++i)
    at = driver.output().find("counted " + std::to_string(i) + "\n", at);
  CHECK(at != std::string::npos);
  CHECK(count_of("counted ", driver.output()) == static_cast<std::size_t>(rounds));
  CHECK_THAT(scene.cluster.head().output(), !Catch::Contains("is gone"));
  CHECK(run({TROUPE_PROGRAM, "stop"}, scene.cluster.environment()).exit_code == 0);
  CHECK(scene.worker.wait());
  CHECK_THAT(scene.worker.output(), Catch::Contains("the cluster was stopped"));
  CHECK(scene.cluster.head().wait());
}

TEST_CASE("a node that is killed is known to be gone at once, also where connections break",
          "[cli][returns][failure]") {
  FarNode scene;
  SECTION("with its connection") {
    ::kill(scene.worker.agent(), SIGKILL);
    scene.cluster.head().wait_for_output("node 1 (far) is gone: ");
  }
  SECTION("while it finds no way back") {
    scene.proxy.block(true);
    scene.cluster.head().wait_for_output("node 1 (far): its connection has broken");
    ::kill(scene.worker.agent(), SIGKILL);
    scene.cluster.head().wait_for_output("node 1 (far) is gone: ");
  }
  CHECK_THAT(scene.cluster.head().output(), !Catch::Contains("no sign of life"));
}

TEST_CASE("a node that comes back too late is refused, and says why it ends",
          "[cli][returns][failure]") {
  FarNode scene;
  scene.proxy.block(true);
  scene.worker.wait_for_output("This node keeps its processes for 60 s without it");
  scene.cluster.head().wait_for_output(
      "node 1 (far) is gone: no sign of life for 10000 ms, and its connection has broken, in place "
      "of which it has made no other one");
  scene.proxy.block(false);
  scene.worker.wait_for_output(
      "the head does not take this node back: it has taken node 1 for lost meanwhile, with all of "
      "its processes: start it again");
  const auto status = scene.worker.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 1);
}

TEST_CASE("a node connects again to the one of its name's addresses at which it found its head",
          "[cli][returns][network]") {
  if (run({"unshare", "--mount", "true"}).exit_code != 0) {
    WARN("skipped: mount namespaces need root");
    return;
  }
  TestCluster cluster(0);
  CutProxy proxy(cluster.address());
  const SilentPort first(proxy.port());
  if (!first.ok()) {
    WARN("skipped: there is no ::1, or its port is taken");
    return;
  }
  const auto names = cluster.folder() + "/hosts";
  std::ofstream(names) << "::1 head.test\n127.0.0.1 head.test\n";
  Child worker({"unshare", "--mount", "sh", "-c",
                "mount --bind " + names + " /etc/hosts && exec \"$0\" \"$@\"", TROUPE_PROGRAM,
                "worker", "--head", "head.test:" + std::to_string(proxy.port()), "--name", "far"},
               cluster.environment());
  worker.wait_for_output("node 1 of the cluster");
  first.listen();
  REQUIRE(proxy.cut() == 1);
  cluster.head().wait_for_output("node 1 (far) has connected again");
  CHECK_FALSE(first.was_called());
  CHECK(run({TROUPE_PROGRAM, "stop"}, cluster.environment()).exit_code == 0);
  CHECK(worker.wait());
  CHECK(cluster.head().wait());
}
