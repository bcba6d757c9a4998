#include "node/spawn/child.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

namespace troupe::node {

void belong_to(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above: then no signal will come.
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
}

void default_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    switch (signal) {
      case SIGSEGV:
      case SIGBUS:
      case SIGFPE:
      case SIGILL:
      case SIGABRT:
      case SIGTRAP:
      case SIGKILL:
      case SIGSTOP:
        continue;
      default:
        ::signal(signal, SIG_DFL);
    }
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void detach_stdin() {
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0) return;
  ::dup2(null, STDIN_FILENO);
  if (null != STDIN_FILENO) ::close(null);
}

LogError redirect_output(const char* file) {
  const int log =
      ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  if (log < 0) return {.number = errno};
  struct stat status {};
  if (::fstat(log, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(log);
    return {.is_no_file = true};
  }
  ::fcntl(log, F_SETFL, O_APPEND);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::close(log);
  return {};
}

std::string describe(const LogError& error) {
  // What a pipe without a reader answers, and a socket.
  const bool is_no_file = error.is_no_file || error.number == ENXIO;
  return is_no_file ? "it is there and is no regular file: remove it, or give another --log-dir"
                    : std::strerror(error.number);
}

void line_buffer_output() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  // A program that has parted iostreams from stdio has buffers of its own there. (With libstdc++
  // and libc++ this call only asks: what was parted stays so.)
  if (std::ios_base::sync_with_stdio(true)) return;
  std::cout << std::unitbuf;
  std::clog << std::unitbuf;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace troupe::node
