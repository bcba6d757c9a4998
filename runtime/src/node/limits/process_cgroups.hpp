#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::node {

/// The cgroups of a node's worker processes, below the node's own. Each belongs to one process at a time and is used again
/// where nothing was left in it: to make and to remove one takes longer than to fork. Lives on the node's loop.
class ProcessCgroups {
 public:
  static constexpr std::size_t kMostSpare = 64;

  /// Empty: there are none.
  explicit ProcessCgroups(std::string node_cgroup) : node_cgroup_(std::move(node_cgroup)) {}

  /// -> its number, for process_cgroup; 0: none can be made.
  std::int32_t take();
  /// Its process has been reaped, or never was. False: there is none, something was left in it, or there are enough to
  /// spare; it is not used again.
  bool give_back(std::int32_t group);
  std::string directory(std::int32_t group) const;

 private:
  std::string node_cgroup_;
  std::int32_t last_ = 0;
  std::vector<std::int32_t> spare_;
};

}  // namespace troupe::node
