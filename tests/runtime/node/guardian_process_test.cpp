#include "node/guard/guardian_process.hpp"

#include <chrono>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

namespace troupe::node {
namespace {

/// A process whose children come and go as fast as they can, without any variables, until this is gone.
class Commotion {
 public:
  Commotion() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      for (int child = 0; child < 20; ++child) {
        if (::fork() == 0) {
          ::execle("/bin/true", "true", nullptr, static_cast<char**>(nullptr));
          ::_exit(127);
        }
      }
      while (::waitpid(-1, nullptr, 0) > 0) {
      }
    }
  }
  Commotion(const Commotion&) = delete;
  ~Commotion() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("a look for marked processes survives those that end while it looks at them", "[node][guardian]") {
  const Commotion commotion;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) REQUIRE(kill_marked({{"TROUPE_MARK_OF_NOBODY=1"}}, 50));
}

}  // namespace troupe::node
