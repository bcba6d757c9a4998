#include "node/guard/reaper.hpp"

#include <cerrno>
#include <vector>

#include <sys/wait.h>
#include <boost/asio/post.hpp>
#include <csignal>

namespace troupe::node {

Reaper::Reaper(asio::io_context& loop, Unknown unknown)
    : signals_(loop, SIGCHLD), unknown_(unknown) {
  wait_for_signal();
}
Reaper::~Reaper() = default;

// ---- announcements ------------------------------------------------------------------------------

Reaper::Announcement Reaper::announce() {
  Announcement announcement;
  announcement.reaper_ = alive_;
  announcement.number_ = ++last_announcement_;
  announcements_.insert(last_announcement_);
  return announcement;
}

Reaper::Announcement::~Announcement() {
  if (const auto reaper = reaper_.lock()) (*reaper)->over(number_);
}

Reaper::Announcement& Reaper::Announcement::operator=(Announcement&& other) noexcept {
  std::swap(reaper_, other.reaper_);
  std::swap(number_, other.number_);
  return *this;
}

void Reaper::over(std::uint64_t announcement) {
  announcements_.erase(announcement);
  if (!not_told_.empty()) sweep_later();
}

/// A child that is told of too late would be taken for another process, whose number is the same.
bool Reaper::may_reap_unknown(pid_t child) {
  if (unknown_ == Unknown::Left) return false;
  const auto since = not_told_.emplace(child, last_announcement_).first->second;
  if (!announcements_.empty() && *announcements_.begin() <= since) return false;
  not_told_.erase(child);
  return true;
}

// ---- children -----------------------------------------------------------------------------------

void Reaper::watch(pid_t child, Group group, OnEnded ended) {
  children_.emplace(child, Child{group, std::move(ended)});
  not_told_.erase(child);
  // It may have ended before it was known, when its signal meant nothing.
  if (this->ended(child)) sweep_later();
}

void Reaper::sweep_later() {
  asio::post(signals_.get_executor(), [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && !stopped_) sweep();
  });
}

void Reaper::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  signals_.cancel(ignored);
}

void Reaper::kill_all() {
  for (const auto& [child, one] : children_) kill_group(child);
  for (const auto& [child, one] : children_) wait_for_end(child);
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
  reap_ended();
  if (on_swept_) on_swept_();
}

void Reaper::reap_ended() {
  // Signals of several children may come as one, and asking each child is slow with thousands of
  // them.
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (watches(info.si_pid)) {
      reap(info.si_pid);
    } else if (may_reap_unknown(info.si_pid)) {
      wait_for_end(info.si_pid);
    } else {
      return sweep_known();  // not ours, or not yet, and ahead of ours in the kernel's list
    }
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
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

void Reaper::reap(pid_t child) {
  const auto found = children_.find(child);
  if (found == children_.end()) return;  // ended by a handler of another child
  const auto one = std::move(found->second);
  children_.erase(found);
  if (one.group == Group::Killed) ::kill(-child, SIGKILL);
  one.on_ended(wait_for_end(child));
}

int wait_for_end(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void kill_group(pid_t leader) {
  ::kill(leader, SIGKILL);
  ::kill(-leader, SIGKILL);
}

}  // namespace troupe::node
