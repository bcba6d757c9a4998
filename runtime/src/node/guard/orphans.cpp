#include "node/guard/orphans.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "node/guard/mark.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {
namespace {

constexpr std::chrono::milliseconds kBetweenRounds{5};

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> first_thread_children() {
  const auto pid = std::to_string(::getpid());
  const os::UniqueFd file(
      ::open(("/proc/" + pid + "/task/" + pid + "/children").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t got = 0; (got = ::read(file.get(), part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  std::vector<pid_t> found;
  const auto* at = text.c_str();
  for (char* end = nullptr; const auto child = std::strtol(at, &end, 10); at = end) {
    found.push_back(static_cast<pid_t>(child));
  }
  return found;
}

std::size_t kill_orphans(const std::function<bool(pid_t child)>& is_orphan) {
  std::size_t found = 0;
  for (const auto child : first_thread_children()) {
    if (!is_orphan(child)) continue;
    ::kill(child, SIGKILL);  // nobody else has this number before this process has reaped it
    ++found;
  }
  return found;
}

void end_children(std::chrono::milliseconds limit) {
  const auto is_left = [](pid_t child) {
    return mark_of_child(child) > 0 && ::waitpid(child, nullptr, WNOHANG) == 0;
  };
  const auto end = std::chrono::steady_clock::now() + limit;
  while (kill_orphans(is_left) > 0 && std::chrono::steady_clock::now() < end) {
    ::poll(nullptr, 0, static_cast<int>(kBetweenRounds.count()));
  }
}

}  // namespace troupe::node
