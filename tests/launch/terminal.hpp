#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "support/child.hpp"

namespace troupe::test {

/// A program that a test has started on a terminal of its own, as its session's leader. Killed at
/// the end, if it still runs.
class Terminal {
 public:
  /// `environment`: "NAME=value", in place of this process's namesakes.
  Terminal(const std::vector<std::string>& arguments, std::vector<std::string> environment) {
    std::vector<std::string> all{"env"};
    all.insert(all.end(), environment.begin(), environment.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& text : all) argv.push_back(text.data());
    argv.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    REQUIRE(pid_ >= 0);
    // A later child that had it would keep the terminal open.
    if (pid_ > 0) ::fcntl(terminal_, F_SETFD, FD_CLOEXEC);
    if (pid_ == 0) {
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (terminal_ >= 0) ::close(terminal_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void wait_for_output(const std::string& text, std::chrono::milliseconds timeout = kGuard) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (output_.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      if (!read_some()) break;
    }
    INFO("waited for '" << text << "' in:\n" << output_);
    REQUIRE(output_.find(text) != std::string::npos);
  }
  /// Keys that somebody presses: "\x03" is Ctrl-C.
  void type(const std::string& keys) {
    REQUIRE(::write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  /// Closes the terminal, which sends SIGHUP to the program. -> as end()
  std::optional<int> close() {
    ::close(std::exchange(terminal_, -1));
    return end();
  }
  /// Waits for the end of the program. -> its exit code, or 128 + the signal that ended it; none: it
  /// still runs after kGuard.
  std::optional<int> end() {
    int status = 0;
    const auto has_ended = [&] {
      if (terminal_ >= 0) read_some();
      return ::waitpid(pid_, &status, WNOHANG) == pid_;
    };
    if (!eventually(has_ended)) return std::nullopt;
    pid_ = -1;
    for (int i = 0; terminal_ >= 0 && i < 20 && read_some(); ++i) continue;  // its last words
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& output() const { return output_; }

 private:
  /// False once there is no more.
  bool read_some() {
    pollfd readable{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 50) <= 0) return true;
    std::array<char, 4096> part;
    const auto got = ::read(terminal_, part.data(), part.size());
    if (got <= 0) return false;
    output_.append(part.data(), static_cast<std::size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string output_;
};

}  // namespace troupe::test
