#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>

#include <stdlib.h>
#include <unistd.h>

#include "guard.hpp"

namespace troupe::test {

/// Calls and tasks in other processes of this machine wait at a gate, so that the test says how long
/// they take, and no clock does. Its destructor opens it.
class Gate {
 public:
  Gate() {
    std::string name = std::filesystem::temp_directory_path() / "troupe-gate-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// For wait_at().
  const std::string& path() const { return path_; }
  void open() {
    std::error_code gone_already;
    std::filesystem::remove(path_, gone_already);
  }

 private:
  std::string path_;  // a directory, which is there while the gate is closed
};

/// Waits until the gate is open. A gate whose path is not there is open. -> 1; 0 where it is still
/// closed after two guards.
inline int wait_at(const std::string& gate) {
  const auto end = std::chrono::steady_clock::now() + 2 * kGuard;
  while (std::filesystem::exists(gate)) {
    if (std::chrono::steady_clock::now() > end) return 0;
    ::usleep(1000);
  }
  return 1;
}

}  // namespace troupe::test
