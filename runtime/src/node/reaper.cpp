#include "node/reaper.hpp"

#include <cerrno>
#include <vector>

#include <sys/wait.h>
#include <boost/asio/post.hpp>
#include <csignal>

namespace troupe::node {

Reaper::Reaper(asio::io_context& loop) : signals_(loop, SIGCHLD) { wait_for_signal(); }

void Reaper::watch(pid_t child, Group group, OnEnded ended) {
  children_.emplace(child, Child{group, std::move(ended)});
  // It may have ended before it was known, when its signal meant nothing.
  if (!this->ended(child)) return;
  asio::post(signals_.get_executor(), [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && !stopped_) sweep();
  });
}

void Reaper::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  signals_.cancel(ignored);
}

void Reaper::kill_all_but(pid_t spared) {
  children_.erase(spared);
  for (const auto& [child, one] : children_) kill_group(child);
  for (const auto& [child, one] : children_) ::waitpid(child, nullptr, 0);
  children_.clear();
}

void Reaper::wait_for_signal() {
  signals_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code error, int) {
    if (error || alive.expired()) return;
    sweep();
    if (!stopped_) wait_for_signal();
  });
}

void Reaper::sweep() {
  // Signals of several children may come as one, and asking each child is slow with thousands of them.
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (!watches(info.si_pid)) return sweep_known();  // somebody else's, and ahead of ours in the kernel's list
    reap(info.si_pid);
  }
}

void Reaper::sweep_known() {
  std::vector<pid_t> over;
  for (const auto& [child, one] : children_) {
    if (ended(child)) over.push_back(child);
  }
  for (auto child : over) reap(child);
}

bool Reaper::ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

void Reaper::reap(pid_t child) {
  const auto found = children_.find(child);
  if (found == children_.end()) return;  // ended by a handler of another child
  const auto one = std::move(found->second);
  children_.erase(found);
  if (one.group == Group::Killed) ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  one.on_ended(status);
  if (on_reaped_) on_reaped_();
}

void kill_group(pid_t leader) {
  ::kill(leader, SIGKILL);
  ::kill(-leader, SIGKILL);
}

}  // namespace troupe::node
