#include "job/left_processes.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "node/guard/orphans.hpp"

namespace troupe::launch {
namespace {

constexpr std::chrono::milliseconds kBetweenKills{5};

std::vector<pid_t> children_besides(const std::vector<pid_t>& programs) {
  auto children = node::first_thread_children();
  std::erase_if(children, [&programs](pid_t child) {
    return std::ranges::find(programs, child) != programs.end();
  });
  return children;
}

}  // namespace

LeftProcesses::LeftProcesses() { node::adopt_orphans(); }

/// Reaps it where it does not.
bool LeftProcesses::runs(pid_t child) { return ::waitpid(child, nullptr, WNOHANG) == 0; }

void LeftProcesses::reap(const std::vector<pid_t>& programs) {
  for (const auto child : children_besides(programs)) {
    if (!runs(child)) asked_.erase(child);
  }
}

std::size_t LeftProcesses::ask_to_end(const std::vector<pid_t>& programs) {
  std::size_t running = 0;
  for (const auto child : children_besides(programs)) {
    if (!runs(child)) {
      asked_.erase(child);
      continue;
    }
    ++running;
    // Nobody else has this number before this process has reaped the child.
    if (asked_.insert(child).second) ::kill(child, SIGTERM);
  }
  return running;
}

LeftProcesses::Killed LeftProcesses::kill_all(std::chrono::milliseconds limit, pid_t group) {
  std::set<pid_t> outside;
  const auto is_left = [&outside, group](pid_t child) {
    const bool is_running = runs(child);
    if (is_running && ::getpgid(child) != group) outside.insert(child);
    return is_running;
  };
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto running = node::kill_orphans(is_left);
    // Unlike the list of children, which may miss one, this is sure.
    if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return {outside.size(), 0};
    if (std::chrono::steady_clock::now() > end) return {outside.size(), running};
    std::this_thread::sleep_for(kBetweenKills);
  }
}

}  // namespace troupe::launch
