#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// Several hosts on this machine: network namespaces 0 to n-1 with the addresses 10.78.0.1 to .n,
/// joined by a bridge in a namespace of its own. Needs root and iproute2. Gone with this object.
class Hosts {
 public:
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  bool ok() const { return ok_; }
  static std::string address(int host) { return "10.78.0." + std::to_string(host + 1); }
  /// The command, to be run there.
  std::vector<std::string> on(int host, std::vector<std::string> command) const;

 private:
  std::string name(int host) const;
  bool join(int host) const;

  std::string prefix_;
  int count_;
  bool ok_ = false;
};

}  // namespace troupe::bench
