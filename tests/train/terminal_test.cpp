// What a run's ranks say on the driver's terminal.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <chrono>
#include <iostream>
#include <string>

#include <torch/utils.h>

#include "guard.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/terminal/terminal.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using troupe::test::kGuard;

namespace {

/// Rank 2 comes once the driver's terminal has said that it is missing.
void come_late(train::Context& ctx, const Terminal& terminal) {
  if (ctx.rank() == 2) terminal.await("in start of the communicator");
  ctx.communicator();
  if (ctx.rank() == 2) terminal.await("in barrier");
  ctx.communicator().barrier();
  if (ctx.rank() == 0) terminal.await("goes on: barrier");
}

void print_a_line(train::Context& ctx, const Terminal& terminal) {
  if (ctx.rank() == 1) std::cerr << "a line of a rank" << std::endl;
  terminal.await("a line of a rank");
}

}  // namespace

TEST_CASE("what a rank prints appears with the name of the user's function", "[train][run]") {
  const Scratch folder;
  const Terminal terminal{(folder.path() / "terminal").string()};
  {
    const StandardError redirected(terminal.file);
    train::run<print_a_line>(terminal, {.workers = 2, .where = train::Where::ThisNode});
  }
  const auto lines = terminal.lines("a line of a rank");
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0],
             Contains("rank 1 ") && Contains("print_a_line ") && !Contains("TrainableWorker"));
}

TEST_CASE("the driver's terminal says once which rank a run waits for, and that it goes on",
          "[train][run][hang]") {
  const Scratch folder;
  Terminal terminal;
  // On a slow machine rank 1 may come too late for the first look, too: then a later one is tried.
  for (std::chrono::milliseconds warn_after(700);; warn_after *= 2) {
    terminal.file = (folder.path() / std::to_string(warn_after.count())).string();
    {
      const StandardError redirected(terminal.file);
      train::run<come_late>(
          terminal,
          {.workers = 3, .where = train::Where::ThisNode, .context = {.warn_after = warn_after}});
    }
    if (terminal.lines(" ranks ").empty() || warn_after > kGuard / 4) break;
  }
  for (const std::string call : {"start of the communicator", "barrier, call 1"}) {
    const auto hangs = terminal.lines(" s in " + call + " (communicator \"context\")");
    REQUIRE(hangs.size() == 1);
    CHECK_THAT(hangs[0], Contains("rank 2, which has not called it") && !Contains("ranks"));
  }
  CHECK(terminal.lines("goes on: barrier, call 1").size() == 1);
}
