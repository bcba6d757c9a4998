#include "node/guard/reaper.hpp"

#include <optional>

#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "waiting.hpp"

namespace troupe::node {
namespace {

using test::run_until;

pid_t child_that_exits(int code) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(code);
  REQUIRE(pid > 0);
  return pid;
}

bool is_zombie(pid_t child) { return test::stat_of(child).state == "Z"; }
bool is_reaped(pid_t child) { return test::stat_of(child).state.empty(); }

/// Until a child has ended, and the reaper has had its chance.
void let_end(asio::io_context& loop, pid_t child) {
  run_until(loop, "a child to end", [&] { return is_zombie(child) || is_reaped(child); });
  // Its signal may come later than its end; a sanitizer delivers it when the loop next waits.
  loop.restart();
  loop.run_for(std::chrono::milliseconds(50));
}

}  // namespace

TEST_CASE("a child that nobody tells of is reaped, also before and behind others",
          "[node][reaper]") {
  asio::io_context loop;
  Reaper reaper(loop, Reaper::Unknown::Reaped);
  const auto before = child_that_exits(1);
  const auto known = child_that_exits(7);
  const auto behind = child_that_exits(1);
  std::optional<int> status;
  reaper.watch(known, Reaper::Group::Killed, [&](int ended) { status = ended; });
  run_until(loop, "all to be reaped",
            [&] { return status && is_reaped(before) && is_reaped(behind); });
  CHECK(WEXITSTATUS(*status) == 7);
}

TEST_CASE("a child that may still be told of is not reaped, and its status is not lost",
          "[node][reaper]") {
  asio::io_context loop;
  Reaper reaper(loop, Reaper::Unknown::Reaped);
  auto first = std::make_optional(reaper.announce());
  auto second = std::make_optional(reaper.announce());
  const auto told = child_that_exits(7), not_told = child_that_exits(1);
  let_end(loop, told);
  let_end(loop, not_told);
  CHECK(is_zombie(told));

  std::optional<int> status;
  reaper.watch(told, Reaper::Group::Killed, [&](int ended) { status = ended; });
  first.reset();
  run_until(loop, "the one that was told of", [&] { return status.has_value(); });
  CHECK(WEXITSTATUS(*status) == 7);
  loop.poll();
  CHECK(is_zombie(not_told));

  auto later = reaper.announce();  // of what is not this child: it has ended already
  second.reset();
  run_until(loop, "the one that nobody told of", [&] { return is_reaped(not_told); });
}

TEST_CASE("a reaper that does not own the children of its process leaves those of others",
          "[node][reaper]") {
  asio::io_context loop;
  Reaper reaper(loop);
  const auto other = child_that_exits(3);
  let_end(loop, other);
  CHECK(is_zombie(other));
  int status = 0;
  CHECK(::waitpid(other, &status, 0) == other);
}

TEST_CASE("an announcement may outlive its reaper", "[node][reaper]") {
  asio::io_context loop;
  auto reaper = std::make_optional<Reaper>(loop, Reaper::Unknown::Reaped);
  Reaper::Announcement kept = reaper->announce();
  reaper.reset();
  kept = {};
}

}  // namespace troupe::node
