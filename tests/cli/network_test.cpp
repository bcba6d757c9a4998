#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

namespace {

/// Two hosts on one machine: network namespaces joined by a veth pair, 10.77.<n>.1 and 10.77.<n>.2. Gone with this object.
class TwoHosts {
 public:
  TwoHosts() : first_("troupe-a-" + std::to_string(getpid())), second_("troupe-b-" + std::to_string(getpid())) {
    const auto near = "ta" + std::to_string(getpid());
    const auto far = "tb" + std::to_string(getpid());
    ok_ = ip("netns add " + first_) && ip("netns add " + second_) &&
          ip("link add " + near + " netns " + first_ + " type veth peer name " + far + " netns " + second_) &&
          up(first_, near, "10.77.0.1") && up(second_, far, "10.77.0.2");
  }
  ~TwoHosts() {
    ip("netns delete " + first_);
    ip("netns delete " + second_);
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool ok() const { return ok_; }
  std::vector<std::string> on_first(std::vector<std::string> command) const { return on(first_, std::move(command)); }
  std::vector<std::string> on_second(std::vector<std::string> command) const { return on(second_, std::move(command)); }

 private:
  static bool ip(const std::string& arguments) {
    return std::system(("ip " + arguments + " 2> /dev/null").c_str()) == 0;
  }
  static bool up(const std::string& host, const std::string& device, const std::string& address) {
    return ip("-n " + host + " addr add " + address + "/24 dev " + device) &&
           ip("-n " + host + " link set " + device + " up") && ip("-n " + host + " link set lo up");
  }
  static std::vector<std::string> on(const std::string& host, std::vector<std::string> command) {
    command.insert(command.begin(), {"ip", "netns", "exec", host});
    return command;
  }

  std::string first_;
  std::string second_;
  bool ok_ = false;
};

std::string read_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// A head on one host and a worker on the other, each with a state folder of its own and one token.
struct Scene {
  TwoHosts hosts;
  TemporaryFolder near;
  TemporaryFolder far;
  std::vector<std::string> near_environment{"XDG_STATE_HOME=" + near.path(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  std::vector<std::string> far_environment{"XDG_STATE_HOME=" + far.path(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="};

  std::string address() const { return read_line(near.path() + "/troupe/address"); }
  void copy_token() const {
    std::filesystem::create_directories(far.path() + "/troupe");
    std::filesystem::copy(near.path() + "/troupe/token", far.path() + "/troupe/token");
  }
};

bool can_make_hosts(const Scene& scene) {
  if (!scene.hosts.ok()) WARN("skipped: network namespaces need root and iproute2");
  return scene.hosts.ok();
}

}  // namespace

TEST_CASE("a program runs on another host, which joined over the network", "[cli][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  Child head(scene.hosts.on_first({TROUPE_PROGRAM, "head", "--host", "10.77.0.1", "--port", "0", "--cpus", "2"}),
             scene.near_environment);
  head.wait_for_output("token file:");
  CHECK_THAT(head.output(), Catch::Contains("not encrypted"));
  scene.copy_token();
  Child worker(
      scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus", "2", "--name", "far"}),
      scene.far_environment);
  worker.wait_for_output("of the cluster at");

  const auto gang =
      run(scene.hosts.on_first({TROUPE_TEST_DRIVER, "gang", "--address", scene.address()}), scene.near_environment);
  INFO(gang.output);
  CHECK(gang.exit_code == 0);
  const auto spread =
      run(scene.hosts.on_first({TROUPE_TEST_DRIVER, "use_all", "--address", scene.address()}), scene.near_environment);
  INFO(spread.output);
  CHECK(spread.exit_code == 0);
  CHECK_THAT(spread.output, Catch::Contains("parent " + std::to_string(worker.pid())));

  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
  CHECK(worker.wait());
  CHECK(eventually([&] { return processes_with("XDG_STATE_HOME=" + scene.far.path()).empty(); }));
}

TEST_CASE("a program that the other machine lacks is sent there by its digest, once", "[cli][network]") {
  Scene scene;
  if (!can_make_hosts(scene)) return;
  Child head(scene.hosts.on_first({TROUPE_PROGRAM, "head", "--host", "10.77.0.1", "--port", "0", "--no-node"}),
             scene.near_environment);
  head.wait_for_output("token file:");
  scene.copy_token();
  // A mount namespace of its own: to the node, the driver's paths are another machine's.
  Child worker(
      scene.hosts.on_second({"unshare", "--mount", TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus", "1"}),
      scene.far_environment);
  worker.wait_for_output("of the cluster at");
  for (int time = 0; time < 2; ++time) {
    const auto task =
        run(scene.hosts.on_first({TROUPE_TEST_DRIVER, "task", "--address", scene.address()}), scene.near_environment);
    INFO(task.output);
    CHECK(task.exit_code == 0);
  }
  std::size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scene.far.path() + "/troupe/programs")) {
    programs += entry.path().filename().string().size() == 64 ? 1 : 0;
  }
  CHECK(programs == 1);
  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
  CHECK(head.wait());
  CHECK(worker.wait());
}
