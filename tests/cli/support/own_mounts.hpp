#pragma once

#include <string>
#include <utility>
#include <vector>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "support/child.hpp"

namespace troupe::test {

/// A command that does this one after `mounts`, a command of sh, in a mount namespace of its own: no
/// other process sees what is mounted there, and it goes with its processes.
inline std::vector<std::string> with_own_mounts(const std::string& mounts,
                                                std::vector<std::string> command) {
  command.insert(command.begin(), {"unshare", geteuid() == 0 ? "-m" : "-rm", "/bin/sh", "-c",
                                   "set -e; " + mounts + "; exec \"$@\"", "sh"});
  return command;
}

/// False, with a line that says so, where this user may not mount, as in many containers, or where
/// the programs of this build lie in the folder that is to be hidden.
inline bool can_mount(const std::string& hidden = "/nothing") {
  if (std::string(TROUPE_PROGRAM).starts_with(hidden + "/")) {
    WARN("skipped: the programs of this build lie in " + hidden);
    return false;
  }
  const bool can = run(with_own_mounts("mount -t tmpfs none /tmp", {"true"})).exit_code == 0;
  if (!can) WARN("skipped: no file system can be mounted here");
  return can;
}

}  // namespace troupe::test
