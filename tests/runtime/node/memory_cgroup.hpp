#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/types.h>
#include <unistd.h>

#include "os/cgroup.hpp"

namespace troupe::node::test {

/// A cgroup with a limit of memory (version 1), gone with this object; false where none can be
/// made. No process is in it by then.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(std::uint64_t bytes) {
    const auto own = os::own_memory_cgroup().version_1;
    auto path = own + "/troupe-test-XXXXXX";
    if (own.empty() || ::mkdtemp(path.data()) == nullptr) return;
    directory_ = path;
    if (!write("memory.limit_in_bytes", std::to_string(bytes))) remove();
  }
  ~MemoryCgroup() { remove(); }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  explicit operator bool() const { return !directory_.empty(); }
  bool take(pid_t process) const { return write("cgroup.procs", std::to_string(process)); }

 private:
  bool write(const std::string& file, const std::string& text) const {
    std::ofstream out(directory_ + "/" + file);
    return static_cast<bool>(out << text << std::flush);
  }
  void remove() {
    if (!directory_.empty()) ::rmdir(directory_.c_str());
    directory_.clear();
  }
  std::string directory_;
};

}  // namespace troupe::node::test
