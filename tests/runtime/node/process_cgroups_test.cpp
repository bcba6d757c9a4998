// The cgroups of worker processes, below this process's own; where a node may make none there is nothing to test.
#include "node/limits/process_cgroups.hpp"

#include <chrono>
#include <filesystem>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>

#include "node/guard/guardian.hpp"
#include "node/guard/mark.hpp"
#include "node/spawn/child.hpp"
#include "os/cgroup.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A node's cgroup; gone, with what is below it, when this is.
struct OneNode {
  const std::string cookie = make_cookie();
  os::NodeCgroup made = os::make_node_cgroup(cookie);
  const std::string directory = made.directory;
  ProcessCgroups groups{directory};

  OneNode() {
    if (directory.empty()) WARN("this process may make no cgroup");
  }
  ~OneNode() {
    if (!directory.empty()) os::remove_cgroup(directory);
  }
};

template <class Condition>
bool within(std::chrono::milliseconds limit, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

/// A process in that cgroup, until it is killed.
class Member {
 public:
  explicit Member(const std::string& cgroup) : pid_(::fork()) {
    if (pid_ == 0) {
      join_cgroup(cgroup.c_str());
      for (;;) ::pause();
    }
    CHECK(within(10s, [&] { return !os::is_untouched_cgroup(cgroup); }));
  }
  ~Member() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("a cgroup in which nothing was left is used again", "[node][cgroup]") {
  OneNode node;
  if (node.directory.empty()) return;
  const auto first = node.groups.take();
  const auto second = node.groups.take();
  REQUIRE(first > 0);
  REQUIRE(second > 0);
  CHECK(first != second);
  CHECK(os::is_cgroup(node.groups.directory(first)));
  CHECK(node.groups.give_back(first));
  CHECK(node.groups.take() == first);
}

TEST_CASE("a cgroup that has members, or another cgroup below it, is not used again", "[node][cgroup]") {
  OneNode node;
  if (node.directory.empty()) return;
  const auto first = node.groups.take();
  {
    const Member member(node.groups.directory(first));
    CHECK_FALSE(node.groups.give_back(first));
  }
  const auto second = node.groups.take();
  CHECK(second != first);
  fs::create_directory(node.groups.directory(second) + "/below");
  CHECK_FALSE(node.groups.give_back(second));
  CHECK(node.groups.take() != second);
}

TEST_CASE("the guardian ends the members of a cgroup that it is to sweep, and removes it", "[node][cgroup][guardian]") {
  OneNode node;
  if (node.directory.empty()) return;
  Guardian guardian(node.cookie, node.directory);
  const auto group = node.groups.take();
  const auto other = node.groups.take();
  {
    const Member member(node.groups.directory(group)), neighbour(node.groups.directory(other));
    guardian.sweep(1, group);
    int status = 0;
    CHECK(::waitpid(member.pid(), &status, 0) == member.pid());
    CHECK(WTERMSIG(status) == SIGKILL);
    CHECK(within(10s, [&] { return !os::is_cgroup(node.groups.directory(group)); }));
    CHECK(::waitpid(neighbour.pid(), &status, WNOHANG) == 0);
  }
  guardian.release();
  ::waitpid(guardian.pid(), nullptr, 0);
  CHECK_FALSE(os::is_cgroup(node.directory));
}

TEST_CASE("a guardian whose node's cgroup was removed by another ends at once", "[node][cgroup][guardian]") {
  OneNode node;
  if (node.directory.empty()) return;
  Guardian guardian(node.cookie, node.directory);
  REQUIRE(os::remove_cgroup(node.directory));
  guardian.release();
  const bool ended = within(5s, [&] { return ::waitpid(guardian.pid(), nullptr, WNOHANG) == guardian.pid(); });
  CHECK(ended);
  if (!ended) ::waitpid(guardian.pid(), nullptr, 0);
}

TEST_CASE("a node removes what dead nodes left without a process, and nothing of those that live", "[node][cgroup]") {
  OneNode dead, busy, living;
  if (dead.directory.empty()) return;
  dead.groups.take();
  dead.made.lock.reset();
  const Member member(busy.groups.directory(busy.groups.take()));
  busy.made.lock.reset();
  const OneNode next;
  CHECK_FALSE(os::is_cgroup(dead.directory));
  CHECK(os::is_cgroup(busy.directory));
  CHECK(os::is_cgroup(living.directory));
  CHECK(os::is_cgroup(next.directory));
}

TEST_CASE("without a cgroup of the node its worker processes have none", "[node][cgroup]") {
  ProcessCgroups none("");
  CHECK(none.take() == 0);
  CHECK(none.directory(0).empty());
  CHECK_FALSE(none.give_back(0));
}

}  // namespace troupe::node
