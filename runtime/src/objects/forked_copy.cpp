#include "objects/forked_copy.hpp"

#include <atomic>
#include <mutex>

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

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
    number_.store(descriptor + 1);
  }
  /// As noted. -1: none, or it stands for something else by now. May be called in a forked copy.
  int get() const {
    struct stat now {};
    const int descriptor = number_.load() - 1;
    const bool same = descriptor >= 0 && ::fstat(descriptor, &now) == 0 &&
                      now.st_dev == device_.load() && now.st_ino == inode_.load();
    return same ? descriptor : -1;
  }

 private:
  // Of the descriptor, plus one; 0: none. All zeros, so that it lies beside the program's other
  // zeroed variables: each worker process would have a page of its own for another beginning.
  std::atomic<int> number_{0};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};

std::atomic<bool> is_copy{false};
bool (*leave_cluster)() = nullptr;
Noted hung_up;
Noted null_device;  // takes the place of that socket, whose number asio goes on to know

void become_copy() {
  if (!leave_cluster()) return;
  is_copy.store(true);
  const int socket = hung_up.get();
  const int nothing = null_device.get();
  if (socket >= 0 && nothing >= 0) ::dup3(nothing, socket, O_CLOEXEC);
  hung_up.note(-1);
}

}  // namespace

void watch_for_copies(bool (*leave)()) {
  static std::once_flag watched;
  std::call_once(watched, [leave] {
    leave_cluster = leave;
    null_device.note(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::pthread_atfork(nullptr, nullptr, &become_copy);
  });
}

bool is_forked_copy() { return is_copy.load(); }

void join_as_copy() {
  if (is_copy.exchange(false)) renew_doorbell();
}

void hang_up_in_copies(int socket) { hung_up.note(socket); }

void end_copy(std::string_view function) {
  const auto text = fmt::format(
      "troupe: process {}, which {} has forked from a worker process, ends as it returns from "
      "there: end it with _exit() or exec()\n",
      ::getpid(), function);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(0);
}

}  // namespace troupe::runtime
