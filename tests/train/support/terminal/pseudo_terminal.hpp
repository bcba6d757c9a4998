#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::testing {

/// A terminal whose output a child process writes to a file while this lives: a thread of this
/// process would keep it from forking worker processes.
class PseudoTerminal {
 public:
  PseudoTerminal(const std::string& file, unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    if (::openpty(&ours_, &theirs_, nullptr, nullptr, &size) != 0) std::abort();
    ::fcntl(ours_, F_SETFD, FD_CLOEXEC);
    ::fcntl(theirs_, F_SETFD, FD_CLOEXEC);
    sigset_t term;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &term, &before);  // which the child asks for
    reader_ = ::fork();
    if (reader_ < 0) std::abort();
    if (reader_ == 0) read(file.c_str());
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  /// Returns once all output is in the file.
  ~PseudoTerminal() {
    ::kill(reader_, SIGTERM);
    ::waitpid(reader_, nullptr, 0);
    ::close(ours_);
    ::close(theirs_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  /// The end of a program, for whoever closes it.
  int program_end() const { return ::fcntl(theirs_, F_DUPFD_CLOEXEC, 0); }

 private:
  [[noreturn]] void read(const char* file) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (;;) {
      sigset_t pending;
      ::sigpending(&pending);
      const bool is_last = ::sigismember(&pending, SIGTERM) == 1;
      pollfd readable{.fd = ours_, .events = POLLIN, .revents = 0};
      if (::poll(&readable, 1, is_last ? 0 : 20) <= 0) {
        if (is_last) ::_exit(0);
        continue;
      }
      std::array<char, 4096> part;
      const auto got = ::read(ours_, part.data(), part.size());
      if (got <= 0 || ::write(out, part.data(), static_cast<std::size_t>(got)) != got) ::_exit(1);
    }
  }

  int ours_ = -1;
  int theirs_ = -1;
  pid_t reader_ = -1;
};

/// The lines that stand on a terminal that was given `text`, without empty ones at the end: of the
/// control sequences it knows those that Troupe writes. The cursor's line and column, from 0, are
/// left in `line` and `column`.
struct Screen {
  std::vector<std::string> lines{""};
  std::size_t line = 0;
  std::size_t column = 0;

  explicit Screen(std::string_view text) {
    while (!text.empty()) {
      if (text.starts_with("\x1b["))
        text.remove_prefix(control(text.substr(2)) + 2);
      else
        put(text.front()), text.remove_prefix(1);
    }
    while (lines.size() > 1 && lines.back().empty()) lines.pop_back();
  }

 private:
  void put(char c) {
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      if (++line == lines.size()) lines.emplace_back();
    } else {
      auto& here = lines[line];
      here.resize(std::max(here.size(), column + 1), ' ');
      here[column++] = c;
    }
  }
  /// -> how long it was.
  std::size_t control(std::string_view text) {
    const auto end = std::min(text.find_first_not_of("0123456789;"), text.size() - 1);
    if (text[end] == 'A') line -= std::min<std::size_t>(line, std::atoi(text.data()));
    if (text[end] == 'K' || text[end] == 'J')
      lines[line].resize(std::min(column, lines[line].size()));
    if (text[end] == 'J') lines.resize(line + 1);
    return end + 1;
  }
};

}  // namespace troupe::testing
