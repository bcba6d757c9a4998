#pragma once

#include <chrono>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace nccl_double {

/// Ends what waits, from another thread, once and for all.
class Stop {
 public:
  Stop() : fd_(::eventfd(0, EFD_CLOEXEC)) {}
  ~Stop() { ::close(fd_); }
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  void set() { ::eventfd_write(fd_, 1); }
  bool is_set() const { return wait(std::chrono::milliseconds(0)); }
  /// Polled beside what is waited for.
  int fd() const { return fd_; }

  /// -> whether it was set within that time.
  bool wait(std::chrono::milliseconds time) const {
    return poll_for(static_cast<int>(time.count()));
  }
  void wait() const { poll_for(-1); }

 private:
  bool poll_for(int milliseconds) const {
    pollfd each{fd_, POLLIN, 0};
    return ::poll(&each, 1, milliseconds) > 0;
  }
  const int fd_;
};

}  // namespace nccl_double
