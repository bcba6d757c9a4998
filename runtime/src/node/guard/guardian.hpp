#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "os/unique_fd.hpp"

namespace troupe::node {

/// A process beside the node that outlives it by a moment: told over a pipe which process groups there are, it kills
/// them and every process that carries the node's mark (see mark.hpp) once the pipe's other end is gone, however the
/// node ended. It is in a session of its own and ignores SIGINT, SIGTERM and SIGHUP. This object is the node's end.
class Guardian {
 public:
  /// Forks. `cgroup`: the directory whose members it kills and which it removes at the end, with those below; may be
  /// empty. Throws Error where the fork fails.
  Guardian(const std::string& cookie, const std::string& cgroup);

  void add(pid_t group);
  void remove(pid_t group);
  /// Kills what a worker process left behind in other sessions: the members of its cgroup of this number (see
  /// process_cgroup), which it removes; without one (0) what carries its mark.
  void sweep(std::uint64_t process, std::int32_t cgroup);

  pid_t pid() const { return pid_; }
  /// Lets it do its work and end; the caller reaps it.
  void release() { pipe_.reset(); }

 private:
  void tell(std::int32_t what, pid_t group, std::uint64_t process);

  os::UniqueFd pipe_;
  pid_t pid_ = 0;
};

}  // namespace troupe::node
