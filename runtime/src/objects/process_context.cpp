#include "objects/process_context.hpp"

#include <mutex>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "ids/session.hpp"
#include "objects/doorbell.hpp"

namespace troupe::runtime {

namespace {

/// A descriptor, and what it stood for: its number may be another's by the time it is used.
class Noted {
 public:
  void note(int descriptor) {
    struct stat what {};
    if (descriptor >= 0 && ::fstat(descriptor, &what) != 0) descriptor = -1;
    device_.store(what.st_dev);
    inode_.store(what.st_ino);
    descriptor_.store(descriptor);
  }
  /// As noted. -1: none, or it stands for something else by now. May be called in a forked copy.
  int get() const {
    struct stat now {};
    const int descriptor = descriptor_.load();
    const bool same = descriptor >= 0 && ::fstat(descriptor, &now) == 0 &&
                      now.st_dev == device_.load() && now.st_ino == inode_.load();
    return same ? descriptor : -1;
  }

 private:
  std::atomic<int> descriptor_{-1};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};

std::atomic<bool> is_copy{false};
Noted hung_up_in_copies;
Noted null_device;  // takes the place of that socket, whose number asio goes on to know

}  // namespace

std::atomic<ProcessContext*> ProcessContext::current_{nullptr};

ProcessContext& ProcessContext::current() {
  if (auto* process = maybe()) return *process;
  if (is_copy.load()) {
    raise({.kind = Failure::Kind::Refused,
           .message = "this process was forked by one that is in a cluster, and is in none itself: "
                      "call troupe::init here too, or start what it does as a task"});
  }
  raise({.kind = Failure::Kind::Refused,
         .message = "this process is in no cluster: call troupe::init first, and keep the Cluster "
                    "that it returns"});
}

void ProcessContext::make_current(ProcessContext* process) {
  static std::once_flag watched;
  std::call_once(watched, [] {
    null_device.note(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::pthread_atfork(nullptr, nullptr, [] { leave_in_copy(); });
  });
  // A copy has the bell of who was copied.
  if (process != nullptr && is_copy.exchange(false)) renew_doorbell();
  current_.store(process, std::memory_order_release);
}

void ProcessContext::hang_up_in_copies(int socket) { hung_up_in_copies.note(socket); }

void ProcessContext::leave_in_copy() {
  if (current_.exchange(nullptr) == nullptr) return;
  is_copy.store(true);
  if (current_session() != 0) end_session();
  const int socket = hung_up_in_copies.get();
  const int nothing = null_device.get();
  if (socket >= 0 && nothing >= 0) ::dup3(nothing, socket, O_CLOEXEC);
  hung_up_in_copies.note(-1);
}

}  // namespace troupe::runtime
