#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/child.hpp"

namespace troupe::test {

/// A real cluster on loopback: a `troupe head` without a node and `workers` times `troupe worker`,
/// with a state folder of their own. Ended and checked for leftovers at the end.
class TestCluster {
 public:
  explicit TestCluster(int workers, int cpus_each = 2);
  /// Asks the cluster to stop, then checks that no process of it is left.
  ~TestCluster();

  const std::string& address() const { return address_; }
  std::string token_file() const { return folder_.path() + "/troupe/token"; }
  std::string folder() const { return folder_.path(); }
  /// For programs that are to find this cluster, and nothing else.
  std::vector<std::string> environment() const;
  Child& head() { return *head_; }
  Child& worker(std::size_t index) { return *workers_.at(index); }
  std::size_t workers() const { return workers_.size(); }
  /// `variables`: of the worker's own environment, and so of what its processes start.
  void add_worker(const std::vector<std::string>& more = {},
                  const std::vector<std::string>& variables = {});

  /// A driver (tests/cli/driver.cpp) doing `what`.
  Child driver(const std::string& what, const std::vector<std::string>& more = {}) const;
  Finished run_driver(const std::string& what) const;
  /// `troupe status --json`.
  std::string status() const;
  /// Waits until the head has heard nothing of one of its nodes for so many seconds.
  bool has_node_silent_for(double seconds) const;
  /// Every node's free resources equal its total, within a few seconds.
  bool all_is_free() const;

 private:
  TemporaryFolder folder_;
  std::string address_;
  std::unique_ptr<Child> head_;
  std::vector<std::unique_ptr<Child>> workers_;
};

}  // namespace troupe::test
