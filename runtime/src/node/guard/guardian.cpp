#include "node/guard/guardian.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include "node/guard/mark.hpp"
#include "node/guard/orphans.hpp"

namespace troupe::node {
namespace {

constexpr std::chrono::seconds kEndLimit{10};  // for killed processes to be gone
constexpr int kSayLimitMs = 1000;

[[noreturn]] void cannot_start(const char* what) {
  throw Error(
      Failure{.kind = Failure::Kind::Unknown,
              .message = fmt::format("cannot start the node in a process of its own: {}: {}", what,
                                     std::strerror(errno))});
}

sigset_t awaited_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    ::sigaddset(&signals, number);
  return signals;
}

/// What the node has open must close with the node, not with its guardian; but for standard error
/// where that is to say how the node ended.
void become_guardian(int lifeline, bool keeps_error) {
  ::prctl(PR_SET_NAME, "troupe-guardian");
  (void)!::chdir("/");
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) {
    if (fd != STDERR_FILENO || !keeps_error) ::dup2(null, fd);
  }
  if (lifeline > 3) ::syscall(SYS_close_range, 3U, static_cast<unsigned>(lifeline - 1), 0U);
  ::syscall(SYS_close_range, static_cast<unsigned>(std::max(lifeline, 2) + 1), ~0U, 0U);
}

/// Passes signals on until the node has ended. -> its status.
int wait_for_node(pid_t node, const sigset_t& signals) {
  for (;;) {
    const int number = ::sigwaitinfo(&signals, nullptr);
    if (number > 0 && number != SIGCHLD) ::kill(node, number);
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == node) return status;
    }
  }
}

void say_what_ended(const std::string& name, pid_t node, int status) {
  const int signal = WTERMSIG(status);
  const auto text = fmt::format(
      "{} (pid {}) was ended by signal {} ({}); what it ran on this machine has been ended too\n",
      name, node, signal, ::strsignal(signal));
  // Neither a reader that has gone nor a terminal that stands still may keep it from its end.
  ::signal(SIGPIPE, SIG_IGN);
  pollfd error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&error, 1, kSayLimitMs) > 0) (void)!::write(STDERR_FILENO, text.data(), text.size());
}

/// Whoever waits for this process sees what the node would have shown.
[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::_exit(128 + WTERMSIG(status));
}

}  // namespace

Guardian run_under_guardian(const std::string& name) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) cannot_start("pipe");
  os::UniqueFd read_end(ends[0]), lifeline(ends[1]);
  const auto signals = awaited_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);  // one that comes before both are ready waits
  ::signal(SIGCHLD, SIG_DFL);
  adopt_orphans();
  const auto described = fmt::format("the process {} (pid {})",
                                     name.empty() ? "between the program and its cluster"
                                                  : fmt::format("that was started as `{}`", name),
                                     ::getpid());
  const pid_t node = ::fork();
  if (node < 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    cannot_start("fork");
  }
  if (node == 0) {
    lifeline.reset();
    // A group of its own, so that a Ctrl-C comes once, through the guardian; not a session of its
    // own: where sessions share the cores (autogroups), the driver of a private cluster would
    // compete with its own workers as with somebody else's.
    ::setpgid(0, 0);
    lower_mark(1);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return {.lifeline = std::move(read_end), .described = described};
  }
  become_guardian(lifeline.get(), !name.empty());
  const int status = wait_for_node(node, signals);
  end_children(kEndLimit);
  if (!name.empty() && WIFSIGNALED(status)) say_what_ended(name, node, status);
  end_as(status);
}

}  // namespace troupe::node
