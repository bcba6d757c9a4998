// The progress bar of a run on the driver's terminal.
#include <troupe/train.hpp>
#include <troupe/troupe.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <torch/utils.h>

#include <troupe/detail/terminal_picture.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/terminal/pseudo_terminal.hpp"
#include "support/terminal/terminal.hpp"

namespace progress_bar_test {

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using train::ShowProgress;
using train::Where;

constexpr int kColumns = 110;

train::Dataset points() {
  const auto x = torch::ones({32, 1});
  return {x, x};
}

/// Two epochs of four batches on each of two ranks. The last batch waits until the terminal has
/// told all that only a run that goes on can tell.
double fit(train::Context& ctx, const Terminal& terminal) {
  for (int epoch : ctx.epochs(2)) {
    int batches = 0;
    for (auto& batch : ctx.loader(points(), 4, epoch)) {
      batch.data.sum();
      ++batches;
      // A second of steps, so that the rate means something.
      if (batches < 4) std::this_thread::sleep_for(std::chrono::milliseconds(400));
      if (batches < 4 || epoch == 0) continue;
      if (ctx.rank() == 1) std::cerr << "a line of a rank" << std::endl;
      terminal.await("a line of a rank");
      terminal.await("ETA ");
    }
    ctx.report({{"loss", 0.5}});
  }
  return 1;
}

/// As quick as it can be.
double fit_at_once(train::Context& ctx, const int& epochs) {
  for (int epoch : ctx.epochs(epochs)) {
    for (auto& batch : ctx.loader(points(), 4, epoch)) batch.data.sum();
    ctx.report({{"loss", 0.5}});
  }
  return 1;
}
double fails(train::Context& ctx, const int& epochs) {
  fit_at_once(ctx, epochs);
  throw std::domain_error("no more");
}
/// Without epochs, until the terminal shows how far it is.
void play(train::Context& ctx, const Terminal& terminal) {
  ctx.progress(0, 4000, "games");
  ctx.progress(1000, 4000, "games");
  terminal.await("games");
  ctx.progress(4000, 4000, "games");
}

/// Without the line of the log that sums up a run that has ended.
std::string without_summary(std::string text) {
  const auto found = text.find("] run '");
  if (found == std::string::npos) return text;
  const auto before = text.rfind('\n', found);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return text.erase(begin, text.find('\n', found) + 1 - begin);
}

struct Shown {
  Scratch folder;
  Terminal terminal{(folder.path() / "terminal").string()};

  /// What `body(terminal)` has written on a terminal.
  template <class Body>
  std::string on_terminal(const Body& body) const {
    ::setenv("TERM", "xterm", 1);
    {
      const PseudoTerminal screen(terminal.file, kColumns);
      const StandardError redirected(screen.program_end());
      body(terminal);
    }
    return without_summary(terminal.text());
  }
  /// The same of standard error that is a file.
  template <class Body>
  std::string in_file(const Body& body) const {
    {
      const StandardError redirected(terminal.file);
      body(terminal);
    }
    return without_summary(terminal.text());
  }
};

TEST_CASE("a run on a terminal shows epoch, percent, rate and time left, and its last line stays",
          "[train][run][progress]") {
  const Shown shown;
  const auto text = shown.on_terminal([](const Terminal& terminal) {
    train::run<fit>(
        terminal,
        {.workers = 2, .where = Where::ThisNode, .on_report = [](const train::Report& report) {
           std::cerr << "report " << report.index << std::endl;
           return Verdict::Continue;
         }});
  });
  CHECK_THAT(text, Contains("fit  epoch 1/2 [") && Contains("epoch 2/2 ["));
  CHECK_THAT(text, Contains("%  ") && Contains(" rows/s  ") && Contains("  ETA "));

  const Screen screen(text);
  INFO(text);
  REQUIRE(screen.lines.size() == 4);  // what was printed stands above, in order
  CHECK(screen.lines[0] == "report 0");
  CHECK_THAT(screen.lines[1], Contains("rank 1 ") && Contains("a line of a rank"));
  CHECK(screen.lines[2] == "report 1");
  CHECK_THAT(screen.lines[3], Contains("fit  epoch 2/2 [") && Contains("#] 100%  ") &&
                                  Contains(" rows/s  ") && Contains("  loss 0.5") &&
                                  !Contains("ETA"));
  CHECK(screen.line == 4);
  CHECK(screen.column == 0);
  CHECK(screen.lines[3].size() < kColumns);
}

TEST_CASE("a run on what is no terminal shows nothing, unless it is told to",
          "[train][run][progress]") {
  const auto run = [](ShowProgress show) {
    return [show](const Terminal&) {
      train::run<fit_at_once>(3, {.where = Where::InProcess, .name = "plane", .progress = show});
    };
  };
  CHECK(Shown().in_file(run(ShowProgress::Auto)).empty());
  CHECK(Shown().on_terminal(run(ShowProgress::Off)).empty());
  const auto lines = Shown().in_file(run(ShowProgress::On));
  CHECK_THAT(lines, Contains("plane  epoch 3/3 [####") && Contains("] 100%  ") &&
                        Catch::EndsWith("  loss 0.5\n"));
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 1);
  CHECK(lines.find('\x1b') == std::string::npos);
}

TEST_CASE("a terminal that cannot move its cursor is none", "[train][run][progress]") {
  CHECK(Shown()
            .on_terminal([](const Terminal&) {
              ::setenv("TERM", "dumb", 1);
              train::run<fit_at_once>(1, {.where = Where::InProcess});
              ::setenv("TERM", "xterm", 1);
            })
            .empty());
}

TEST_CASE("a run in this process shows how far it is, and what its function tells",
          "[train][run][progress]") {
  const auto text = Shown().on_terminal(
      [](const Terminal& terminal) { train::run<play>(terminal, {.where = Where::InProcess}); });
  CHECK_THAT(text, Contains("play  0/4,000 games [") || Contains("play  1,000/4,000 games ["));
  const Screen screen(text);
  REQUIRE(screen.lines.size() == 1);
  CHECK_THAT(screen.lines[0], Contains("play  4,000/4,000 games [####") && Contains("100%"));
  CHECK(screen.line == 1);
}

TEST_CASE("whatever ends a run, the cursor stands below its bar", "[train][run][progress]") {
  const auto where = GENERATE(Where::ThisNode, Where::InProcess);
  CAPTURE(static_cast<int>(where));
  const auto check = [](const std::string& text) {
    INFO(text);
    const Screen screen(text);
    CHECK_THAT(screen.lines.back(), Contains("epoch 1/") || Contains("epoch 2/"));
    CHECK(screen.line == screen.lines.size());
    CHECK(screen.column == 0);
    CHECK(troupe::detail::TerminalPicture::of_process().lifted(STDERR_FILENO).after.empty());
  };
  check(Shown().on_terminal(
      [&](const Terminal&) { CHECK_THROWS(train::run<fails>(2, {.where = where})); }));
  check(Shown().on_terminal([&](const Terminal&) {
    const auto refuses = [](const train::Report& report) -> Verdict {
      if (report.index == 1) throw std::domain_error("a bad report");
      return Verdict::Continue;
    };
    CHECK_THROWS_WITH(train::run<fit_at_once>(9, {.where = where, .on_report = refuses}),
                      "a bad report");
  }));
}

TEST_CASE("a run that was stopped says so", "[train][run][progress]") {
  const auto text = Shown().on_terminal([](const Terminal&) {
    train::run<fit_at_once>(
        9, {.where = Where::InProcess, .on_report = [](const auto&) { return Verdict::Stop; }});
  });
  CHECK_THAT(Screen(text).lines.back(), Contains("epoch 1/9") && Contains("  stopped"));
}

}  // namespace progress_bar_test
