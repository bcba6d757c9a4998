#include "hosts.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

namespace troupe::bench {
namespace {

bool ip(const std::string& arguments) {
  return std::system(("ip " + arguments + " 2> /dev/null").c_str()) == 0;
}

}  // namespace

Hosts::Hosts(int count) : prefix_(fmt::format("troupe-{}", ::getpid())), count_(count) {
  ok_ = ip(fmt::format("netns add {}-switch", prefix_)) &&
        ip(fmt::format("-n {}-switch link add bridge type bridge", prefix_)) &&
        ip(fmt::format("-n {}-switch link set bridge up", prefix_));
  for (int host = 0; ok_ && host < count; ++host) ok_ = join(host);
}

Hosts::~Hosts() {
  for (int host = 0; host < count_; ++host) ip("netns delete " + name(host));
  ip(fmt::format("netns delete {}-switch", prefix_));
}

std::string Hosts::name(int host) const { return fmt::format("{}-{}", prefix_, host); }

bool Hosts::join(int host) const {
  const auto there = name(host);
  return ip("netns add " + there) &&
         ip(fmt::format("-n {} link add eth0 type veth peer name port{} netns {}-switch", there,
                        host, prefix_)) &&
         ip(fmt::format("-n {}-switch link set port{} master bridge up", prefix_, host)) &&
         ip(fmt::format("-n {} addr add {}/24 dev eth0", there, address(host))) &&
         ip(fmt::format("-n {} link set eth0 up", there)) &&
         ip(fmt::format("-n {} link set lo up", there));
}

std::vector<std::string> Hosts::on(int host, std::vector<std::string> command) const {
  command.insert(command.begin(), {"ip", "netns", "exec", name(host)});
  return command;
}

}  // namespace troupe::bench
