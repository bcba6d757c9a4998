#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace troupe::test {

/// A process of its own that runs `body`, whose result is its exit code: 255 where it throws, as a
/// REQUIRE that fails there does, after which the next test would run here. It ends with this
/// object, and with the test.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 255;
    try {
      code = body();
    } catch (...) {
    }
    ::_exit(code);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { kill(); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  void stand_still(std::chrono::milliseconds time) const {
    ::kill(pid_, SIGSTOP);
    std::this_thread::sleep_for(time);
    ::kill(pid_, SIGCONT);
  }
  /// Waits for its end. A signal that killed it is a negative number.
  int exit_code() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

}  // namespace troupe::test
