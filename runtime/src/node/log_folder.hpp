#pragma once

#include <cstddef>
#include <string>

#include <unistd.h>

#include "os/unique_fd.hpp"

namespace troupe::node {

/// The folder that a node's logs go to. A lock on a file in it, which ends with this process, says
/// that it is in use, to other machines too where they share the folder. Owned by the node; opened
/// after the last fork that does not exec.
class LogFolder {
 public:
  /// Makes the folder if need be. -> "" or why it cannot be had.
  std::string open(const std::string& path);
  /// Makes it again where somebody has removed it: processes that start find their folder.
  void restore() {
    if (lock_ && ::access(path_.c_str(), F_OK) != 0) open(path_);
  }

 private:
  std::string path_;
  os::UniqueFd lock_;
};

/// Removes from `parent` what folders "node-PID" nodes have left that have ended, but for the
/// `keep` that were written to last. Folders in use, and everything of another name, stay. -> how
/// many were removed.
std::size_t remove_old_logs(const std::string& parent, std::size_t keep);

}  // namespace troupe::node
