#pragma once

#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/unique_fd.hpp"

namespace troupe::store::test {

/// Whether a fork that does this says yes.
template <class Body>
bool in_fork(Body body) {
  const auto pid = ::fork();
  if (pid == 0) {
    try {
      ::_exit(body() ? 0 : 1);
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
    } catch (...) {
      std::cerr << "a check of the fork failed" << std::endl;
    }
    ::_exit(2);
  }
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// A file system of so many bytes, mounted over a directory in a mount namespace of its own: there,
/// and under path() from outside. It is gone with this object.
class TinyDisk {
 public:
  TinyDisk(const std::string& directory, std::uint64_t bytes);
  ~TinyDisk();

  const std::string& why_not() const { return why_not_; }  ///< not empty: it could not be mounted
  const std::string& path() const { return path_; }
  /// The calling process, which has one thread, is in that namespace from now on.
  bool enter() const;

 private:
  pid_t keeper_ = 0;
  os::UniqueFd end_;  // the keeper lives until this is closed
  std::string path_;
  std::string why_not_;
};

/// A memory cgroup (version 1 or 2) with that limit; it is gone with this object, with no process
/// in it.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::uint64_t bytes);
  ~MemoryLimit();

  const std::string& why_not() const { return why_not_; }
  const std::string& directory() const { return directory_; }
  bool enter() const;  ///< the calling process

 private:
  std::string directory_;
  std::string why_not_;
};

}  // namespace troupe::store::test
