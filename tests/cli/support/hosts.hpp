#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

namespace troupe::test {

/// Two hosts on one machine: network namespaces joined by a veth pair, 10.77.<n>.1 and 10.77.<n>.2.
/// Gone with this object.
class TwoHosts {
 public:
  TwoHosts()
      : first_("troupe-a-" + std::to_string(getpid())),
        second_("troupe-b-" + std::to_string(getpid())) {
    const auto near = "ta" + std::to_string(getpid());
    const auto far = second_device();
    ok_ = ip("netns add " + first_) && ip("netns add " + second_) &&
          ip("link add " + near + " netns " + first_ + " type veth peer name " + far + " netns " +
             second_) &&
          up(first_, near, "10.77.0.1") && up(second_, far, "10.77.0.2");
  }
  ~TwoHosts() {
    ip("netns delete " + first_);
    ip("netns delete " + second_);
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool ok() const { return ok_; }
  /// Its link to the first.
  static std::string second_device() { return "tb" + std::to_string(getpid()); }
  /// Changes the network of the second host, by arguments of `ip`.
  bool change_second(const std::string& arguments) const {
    return ip("-n " + second_ + " " + arguments);
  }
  std::vector<std::string> on_first(std::vector<std::string> command) const {
    return on(first_, std::move(command));
  }
  std::vector<std::string> on_second(std::vector<std::string> command) const {
    return on(second_, std::move(command));
  }

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

inline std::string read_line(const std::string& file) {
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
  std::vector<std::string> near_environment{"XDG_STATE_HOME=" + near.path(),
                                            "TROUPE_TOKEN=", "TROUPE_ADDRESS="};
  std::vector<std::string> far_environment{"XDG_STATE_HOME=" + far.path(),
                                           "TROUPE_TOKEN=", "TROUPE_ADDRESS="};

  std::string address() const { return read_line(near.path() + "/troupe/address"); }
  void copy_token() const {
    std::filesystem::create_directories(far.path() + "/troupe");
    std::filesystem::copy(near.path() + "/troupe/token", far.path() + "/troupe/token");
  }
  /// On the first host, with its token on the second.
  Child start_head(const std::vector<std::string>& options) const {
    std::vector<std::string> command{TROUPE_PROGRAM, "head", "--host", "10.77.0.1", "--port", "0"};
    command.insert(command.end(), options.begin(), options.end());
    Child head(hosts.on_first(std::move(command)), near_environment);
    head.wait_for_output("token file:");
    copy_token();
    return head;
  }
  /// A driver on the first host, with the head's address.
  Finished drive(std::vector<std::string> command) const {
    command.insert(command.end(), {"--address", address()});
    return run(hosts.on_first(std::move(command)), near_environment, std::chrono::seconds(60));
  }
};

inline bool can_make_hosts(const Scene& scene) {
  if (!scene.hosts.ok()) WARN("skipped: network namespaces need root and iproute2");
  return scene.hosts.ok();
}

}  // namespace troupe::test
