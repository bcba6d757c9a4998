#include "node/guard/guardian.hpp"

#include <array>
#include <functional>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "guard.hpp"
#include "node/guard/reaper.hpp"
#include "node/spawn/child.hpp"
#include "waiting.hpp"

namespace troupe::node {
namespace {

/// A guardian with a node that does one thing; `before` is done in the process that becomes the
/// guardian.
class Guarded {
 public:
  explicit Guarded(
      const std::function<int(int guardian)>& node, const std::function<void()>& before = [] {}) {
    REQUIRE(::pipe(words_.data()) == 0);
    guardian_ = ::fork();
    if (guardian_ != 0) return;
    default_signals();  // and not those of the test runner
    before();
    const auto guardian = run_under_guardian();
    say(::getpid());
    ::_exit(node(guardian.lifeline.get()));
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() {
    if (guardian_ > 0) end();
    for (const int fd : words_) ::close(fd);
  }

  /// From node or guardian to the test.
  void say(pid_t pid) const { (void)!::write(words_[1], &pid, sizeof pid); }
  pid_t hear() const {
    pid_t pid = 0;
    REQUIRE(::read(words_[0], &pid, sizeof pid) == sizeof pid);
    return pid;
  }
  pid_t pid() const { return guardian_; }
  int end() { return wait_for_end(std::exchange(guardian_, 0)); }

 private:
  std::array<int, 2> words_{};
  pid_t guardian_ = 0;
};

/// A child of this process that waits for a signal.
pid_t sleeper() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  for (;;) ::pause();
}

/// An orphan may have become a child of this process, if another test has made a node in it.
bool ends(pid_t orphan) {
  const bool is_gone = test::gone_within(orphan, troupe::test::kGuard);
  ::waitpid(orphan, nullptr, WNOHANG);
  return is_gone;
}

int waits_for_a_signal(int) {
  for (;;) ::pause();
}

}  // namespace

TEST_CASE("a guardian ends with the exit code of its node", "[node][guardian]") {
  Guarded guarded([](int) { return 7; });
  const int status = guarded.end();
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("a guardian passes signals on to its node, and ends by the one that has ended the node",
          "[node][guardian]") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Guarded guarded(waits_for_a_signal);
    guarded.hear();
    ::kill(guarded.pid(), number);
    const int status = guarded.end();
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == number);
  }
}

TEST_CASE("a signal to the group of a guardian does not reach its node", "[node][guardian]") {
  Guarded guarded(waits_for_a_signal, [] { ::setpgid(0, 0); });
  const pid_t node = guarded.hear();
  ::kill(-guarded.pid(), SIGKILL);
  CHECK(WTERMSIG(guarded.end()) == SIGKILL);
  CHECK(test::runs(node));
  ::kill(node, SIGKILL);
  CHECK(ends(node));
}

TEST_CASE("a node learns of the end of its guardian", "[node][guardian]") {
  Guarded guarded([](int guardian) {
    pollfd ended{guardian, POLLIN, 0};
    return ::poll(&ended, 1, 10'000) == 1 ? 0 : 1;
  });
  const pid_t node = guarded.hear();
  ::kill(guarded.pid(), SIGKILL);
  guarded.end();
  CHECK(ends(node));
}

TEST_CASE("what a node leaves ends with it, and what its guardian had started before does not",
          "[node][guardian]") {
  const Guarded* self = nullptr;
  Guarded guarded(
      [&](int) {
        self->say(sleeper());
        return 0;
      },
      [&] {
        self = &guarded;
        self->say(sleeper());
      });
  const pid_t before = guarded.hear();
  guarded.hear();
  const pid_t left = guarded.hear();
  CHECK(guarded.end() == 0);
  CHECK_FALSE(test::runs(left));
  CHECK(test::runs(before));
  ::kill(before, SIGKILL);
  CHECK(ends(before));
}

}  // namespace troupe::node
