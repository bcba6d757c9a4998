// Large values, short tasks and lost nodes between two hosts, each with an object store of its own.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"
#include "support/hosts.hpp"

using namespace troupe::test;

namespace {

constexpr std::chrono::seconds kLimit{90};

std::vector<std::string> node(const char* label, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TROUPE_PROGRAM);
  arguments.insert(arguments.end(),
                   {"--object-store-memory", "128MiB", "--cpus", "2", "--label", label});
  return arguments;
}

/// The head with a node on the first host; a node on the second.
struct TwoNodes : Scene {
  Child head{hosts.on_first(node("host=near", {"head", "--host", "10.77.0.1", "--port", "0"})),
             near_environment};

  Child second() {
    head.wait_for_output("token file:");
    copy_token();
    Child worker(hosts.on_second(node("host=far", {"worker", "--head", address()})),
                 far_environment);
    worker.wait_for_output("of the cluster at");
    return worker;
  }
  Finished drive(const char* what) const {
    return run(hosts.on_first({TROUPE_TEST_LARGE_DRIVER, what, "--address", address()}),
               near_environment, kLimit);
  }
};

struct Usage {
  std::uint64_t used = 0, objects = 0;
  bool all_free = true;
};

/// Over all nodes.
Usage usage(const TestCluster& cluster) {
  Usage sum;
  const auto status = nlohmann::json::parse(cluster.status());
  for (const auto& node : status["nodes"]) {
    sum.all_free = sum.all_free && node["free"] == node["total"];
    if (!node.contains("store")) continue;
    sum.used += node["store"]["used"].get<std::uint64_t>();
    sum.objects += node["store"]["objects"].get<std::uint64_t>();
  }
  return sum;
}

/// Of Troupe: other programs of the machine have files there too.
std::vector<std::string> shared_memory() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const auto name = entry.path().filename().string();
    if (name.find("troupe") != std::string::npos) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE(
    "a job that lives on leaves nothing behind of calls that were cancelled, let go or killed",
    "[cli][cluster][store][failure]") {
  const auto before = shared_memory();
  TestCluster cluster(1);
  Child driver({TROUPE_TEST_LARGE_DRIVER, "lets_go"}, cluster.environment());
  driver.wait_for_output("let go");
  constexpr std::uint64_t kLast = 12 << 20, kPages = 8192;  // which it holds
  const auto is_clean = [&] {
    const auto left = usage(cluster);
    return left.objects == 1 && left.used >= kLast && left.used < kLast + kPages;
  };
  CHECK(eventually(is_clean));
  const auto left = usage(cluster);
  INFO(left.objects << " objects, " << left.used << " bytes");
  CHECK(is_clean());
  CHECK(eventually([&] { return usage(cluster).all_free; }));
  CHECK_THAT(run({TROUPE_PROGRAM, "status"}, cluster.environment()).output,
             Catch::Contains("object store 12.0 MiB of"));
  CHECK(is_alive(driver.pid()));
  CHECK(driver.output().find("not so") == std::string::npos);
  CHECK(shared_memory() == before);
}

TEST_CASE(
    "what a process on another node had not told its caller of goes with it, and what it had stays",
    "[cli][cluster][store][failure]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "2", "--label", "host=near"});  // where the driver has its store
  cluster.add_worker({"--cpus", "2", "--label", "host=far"});
  Child driver({TROUPE_TEST_LARGE_DRIVER, "lets_go_afar"}, cluster.environment());
  driver.wait_for_output("let go");
  const auto is_clean = [&] {
    const auto left = usage(cluster);
    return left.objects == 3 && left.used >= 14 << 20;
  };
  CHECK(eventually(is_clean));
  const auto left = usage(cluster);
  INFO(left.objects << " objects, " << left.used << " bytes");
  CHECK(is_clean());
  driver.signal(SIGUSR1);
  driver.wait_for_output("read");
  CHECK(driver.wait() == 0);
  CHECK(driver.output().find("not so") == std::string::npos);
}

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
  const auto driver = run(
      scene.hosts.on_second({TROUPE_TEST_LARGE_DRIVER, "from_afar", "--address", scene.address()}),
      scene.far_environment, kLimit);
  INFO(driver.output);
  CHECK(driver.exit_code == 0);
}

TEST_CASE("a value whose node was killed is lost, and said to be",
          "[cli][network][store][failure]") {
  TwoNodes scene;
  if (!can_make_hosts(scene)) return;
  auto worker = scene.second();
  Child driver(
      scene.hosts.on_first({TROUPE_TEST_LARGE_DRIVER, "lost", "--address", scene.address()}),
      scene.near_environment);
  driver.wait_for_output("made");
  REQUIRE(::kill(worker.agent(), SIGKILL) == 0);
  driver.wait_for_output("ObjectLost: ");
  CHECK(driver.wait() == 0);
}

TEST_CASE("who writes to a value that others read is ended by SIGSEGV, and told why",
          "[cli][cluster][store]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "1", "--label", "host=near"});
  const auto driver = run({TROUPE_TEST_LARGE_DRIVER, "overwrites"}, cluster.environment());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(driver.exit_code == 128 + SIGSEGV);
  CHECK_THAT(driver.output, Catch::Contains("has written to a value of the object store"));
#else
  CHECK(driver.exit_code != 0);  // a sanitizer handles the signal
#endif
}

TEST_CASE("a value on a living node is not lost to a link that is cut for two seconds",
          "[cli][network][store][failure]") {
  const bool has_store = GENERATE(false, true);  // the driver's host
  TwoNodes scene;
  if (!can_make_hosts(scene)) return;
  INFO("a node beside the driver: " << has_store);
  std::optional<Child> worker;
  if (has_store) {
    worker.emplace(scene.second());
  } else {
    scene.head.wait_for_output("token file:");
    scene.copy_token();
  }
  Child driver(scene.hosts.on_second(
                   {TROUPE_TEST_LARGE_DRIVER, "over_a_cut_link", "--address", scene.address()}),
               scene.far_environment);
  driver.wait_for_output("made");
  const auto link = "link set " + TwoHosts::second_device();
  REQUIRE(scene.hosts.change_second(link + " down"));
  driver.signal(SIGUSR1);
  driver.wait_for_output("reads");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  CHECK(driver.output().find("ObjectLost") == std::string::npos);
  REQUIRE(scene.hosts.change_second(link + " up"));
  driver.wait_for_output("read\n");
  CHECK(driver.wait() == 0);
}
