// What a run's ranks say on the driver's terminal.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <chrono>
#include <iostream>
#include <string>

#include <torch/utils.h>

#include "guard.hpp"
#include "support/catch.hpp"
#include "support/net.hpp"
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

/// Saves after each epoch.
void save_epochs(train::Context& ctx, const int& epochs) {
  auto net = ctx.prepare(Net(std::vector<std::int64_t>{1, 1}));
  for (const int epoch : ctx.epochs(epochs)) ctx.report({{"epoch", epoch}}, ctx.checkpoint(net));
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

TEST_CASE("a run that continues says on the driver's terminal, once, from where",
          "[train][run][checkpoint]") {
  const Scratch folder;
  const Terminal terminal{(folder.path() / "terminal").string()};
  train::RunOptions options{
      .workers = 2, .where = train::Where::ThisNode, .storage = folder.path() / "run"};
  const auto begun = train::run<save_epochs>(3, options).checkpoint;
  const int epochs = GENERATE(10, 3);
  const auto line = epochs == 10 ? "continues from " + begun.string() + ", at epoch 4 of 10"
                                 : begun.string() + " has all 3 epochs: no epoch is left";
  const auto lines = [&] { return terminal.lines(begun.string()); };
  options.restore_from = begun;
  {
    const StandardError redirected(terminal.file);
    train::run<save_epochs>(epochs, options);
  }
  REQUIRE(lines().size() == 1);
  CHECK_THAT(lines()[0], Contains(line) && Contains("rank 0 "));

  // A sweep says itself which of its trials continue.
  {
    const StandardError redirected(terminal.file);
    const auto cluster = init({.cpus = 2});
    troupe::detail::TrialRun<save_epochs> trial(gang<troupe::detail::TrainableWorker<save_epochs>>(
        {.size = 2}, 3,
        troupe::detail::RunInfo{.restore_from = begun, .settings = train::ContextOptions()}));
    CHECK(trial.wait().returned);
  }
  CHECK(lines().size() == 1);
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
