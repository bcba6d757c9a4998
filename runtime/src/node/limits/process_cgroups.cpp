#include "node/limits/process_cgroups.hpp"

#include <sys/stat.h>

#include "os/cgroup.hpp"

namespace troupe::node {

std::int32_t ProcessCgroups::take() {
  if (node_cgroup_.empty()) return 0;
  if (!spare_.empty()) {
    const auto group = spare_.back();
    spare_.pop_back();
    return group;
  }
  return ::mkdir(os::process_cgroup(node_cgroup_, last_ + 1).c_str(), 0755) == 0 ? ++last_ : 0;
}

bool ProcessCgroups::give_back(std::int32_t group) {
  if (group == 0 || spare_.size() >= kMostSpare || !os::is_untouched_cgroup(directory(group))) return false;
  spare_.push_back(group);
  return true;
}

std::string ProcessCgroups::directory(std::int32_t group) const { return os::process_cgroup(node_cgroup_, group); }

}  // namespace troupe::node
