#include "namespaces.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <csignal>

#include <fmt/format.h>

namespace troupe::store::test {
namespace {

std::string write_to(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out ? "" : fmt::format("cannot write {} to {}: {}", text, file, std::strerror(errno));
}

/// Of this process: "/a/b" of the line "ID:memory:/a/b", or of "0::/a/b".
std::string own_group(const std::string& controller) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto marker = ":" + controller + ":";
    const auto at = line.find(marker);
    if (at != std::string::npos) return line.substr(at + marker.size());
  }
  return {};
}

}  // namespace

TinyDisk::TinyDisk(const std::string& directory, std::uint64_t bytes) {
  int alive[2], ready[2];
  if (::pipe2(alive, O_CLOEXEC) != 0 || ::pipe2(ready, O_CLOEXEC) != 0) {
    why_not_ = "no pipe";
    return;
  }
  const os::UniqueFd their_end(alive[0]), is_ready(ready[0]);
  os::UniqueFd tells(ready[1]);
  end_.reset(alive[1]);
  keeper_ = ::fork();
  if (keeper_ == 0) {
    end_.reset();
    const auto options = fmt::format("size={}", bytes);
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("tmpfs", directory.c_str(), "tmpfs", 0, options.c_str()) == 0;
    char answer = mounted ? 'y' : 'n';
    if (::write(tells.get(), &answer, 1) == 1)
      static_cast<void>(::read(their_end.get(), &answer, 1));
    ::_exit(0);
  }
  tells.reset();
  char answer = 'n';
  if (::read(is_ready.get(), &answer, 1) != 1 || answer != 'y') {
    why_not_ = "this user may not mount a file system in a namespace of its own";
  }
  path_ = fmt::format("/proc/{}/root{}", keeper_, directory);
}

TinyDisk::~TinyDisk() {
  end_.reset();
  if (keeper_ > 0) ::waitpid(keeper_, nullptr, 0);
}

bool TinyDisk::enter() const {
  const os::UniqueFd space(
      ::open(fmt::format("/proc/{}/ns/mnt", keeper_).c_str(), O_RDONLY | O_CLOEXEC));
  return space && ::setns(space.get(), CLONE_NEWNS) == 0;
}

MemoryLimit::MemoryLimit(std::uint64_t bytes) {
  namespace fs = std::filesystem;
  const auto name = fmt::format("/troupe-test-{}", ::getpid());
  const bool version_1 = fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  directory_ = (version_1 ? "/sys/fs/cgroup/memory" + own_group("memory")
                          : "/sys/fs/cgroup" + own_group("")) +
               name;
  if (::mkdir(directory_.c_str(), 0755) != 0) {
    why_not_ = fmt::format("no memory cgroup {}: {}", directory_, std::strerror(errno));
    directory_.clear();
    return;
  }
  why_not_ = write_to(directory_ + (version_1 ? "/memory.limit_in_bytes" : "/memory.max"),
                      std::to_string(bytes));
}

MemoryLimit::~MemoryLimit() {
  if (!directory_.empty()) ::rmdir(directory_.c_str());
}

bool MemoryLimit::enter() const {
  return write_to(directory_ + "/cgroup.procs", std::to_string(::getpid())).empty();
}

}  // namespace troupe::store::test
