#include "output/display.hpp"

#include <array>
#include <cstdlib>
#include <string>

#include <pty.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/detail/terminal_picture.hpp>

namespace display_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

Experiment search() {
  const Objective objective{"accuracy", Max};
  return {{.objective = objective},
          std::make_unique<RandomSearcher>(SearchSpace{{"lr", 0.5}}, 1, 2),
          fifo()(objective, 1)};
}

struct Ends {
  int ours = -1;
  int displays = -1;
  ~Ends() {
    close(ours);
    if (displays >= 0) close(displays);
  }
};

/// What was written to the other end, which is closed.
std::string all_from(Ends& ends) {
  close(std::exchange(ends.displays, -1));
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t size = 0; (size = read(ends.ours, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
}

void run(Experiment& experiment, Display& display) {
  experiment.observe(
      [&](const Event& event, const Trial* trial) { display.show(event, trial, experiment); });
  experiment.next(Seconds(0));
  experiment.started(0, Seconds(0));
  display.tick(experiment, Seconds(0));
  experiment.report(0, 1, {{"accuracy", 0.25}}, {}, Seconds(0.1));
  display.tick(experiment, Seconds(0.1));
  experiment.ended(0, Seconds(1));
  display.tick(experiment, Seconds(1));
  auto overview = overview_of(experiment, Seconds(2), 0);
  display.finish(experiment, overview);
}

}  // namespace

TEST_CASE("a pipe gets lines without a single escape", "[tune][display]") {
  Ends ends;
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  ends.ours = pipe_ends[0];
  ends.displays = pipe_ends[1];
  auto experiment = search();
  auto display = Display::for_descriptor(ends.displays);

  run(experiment, display);

  CHECK(
      all_from(ends) ==
      "[  0.0 s] trial 0 started: lr=0.5\n"
      "[  1.0 s] trial 0 terminated; best accuracy 0.25 at t=1. Best: trial 0 with accuracy 0.25.\n"
      "tune: 1 trial in 2.0 s\n"
      "  best: trial 0, accuracy 0.25 at t=1\n"
      "    lr = 0.5\n"
      "  1 terminated, 0 stopped, 0 errored\n");
}

TEST_CASE("what people should know is a line of its own, but not into a table", "[tune][display]") {
  const auto shown = [](Display::Kind kind) {
    Ends ends;
    std::array<int, 2> pipe_ends{};
    REQUIRE(pipe(pipe_ends.data()) == 0);
    ends.ours = pipe_ends[0];
    ends.displays = pipe_ends[1];
    Display(kind, ends.displays, false).note("the nodes do not share the folder", Seconds(1));
    return all_from(ends);
  };
  CHECK(shown(Display::Kind::Lines) == "[  1.0 s] note: the nodes do not share the folder\n");
  CHECK(shown(Display::Kind::Table) == "");
}

TEST_CASE("what is waited for is a line, also in place of a table", "[tune][display]") {
  const auto shown = [](Display::Kind kind) {
    Ends ends;
    std::array<int, 2> pipe_ends{};
    REQUIRE(pipe(pipe_ends.data()) == 0);
    ends.ours = pipe_ends[0];
    ends.displays = pipe_ends[1];
    const auto experiment = search();
    Display display(kind, ends.displays, false);
    display.tick(experiment, Seconds(0));
    display.say("the run waits", Seconds(3));
    return all_from(ends);
  };
  CHECK(shown(Display::Kind::Lines) == "[  3.0 s] the run waits\n");
  CHECK_THAT(shown(Display::Kind::Table),
             Catch::EndsWith("\x1b[3A\r\x1b[J[  3.0 s] the run waits\n"));
  CHECK(shown(Display::Kind::None) == "");
}

TEST_CASE("what workers print goes above the table until the run ends, then below",
          "[tune][display]") {
  setenv("TERM", "xterm", 1);
  Ends ends;
  REQUIRE(openpty(&ends.ours, &ends.displays, nullptr, nullptr, nullptr) == 0);
  auto& picture = troupe::detail::TerminalPicture::of_process();
  auto experiment = search();
  {
    auto display = Display::for_descriptor(ends.displays);
    display.tick(experiment, Seconds(0));
    const auto table = picture.lifted(ends.displays);
    CHECK(table.before == "\x1b[3A\r\x1b[J");
    CHECK_THAT(table.after, Catch::Contains("tune: max accuracy"));
  }
  CHECK(picture.lifted(ends.displays).after.empty());  // a run that was given up
  auto display = Display::for_descriptor(ends.displays);
  run(experiment, display);
  CHECK(picture.lifted(ends.displays).after.empty());
}

TEST_CASE("a terminal gets a table that is drawn over itself, at most every 200 ms",
          "[tune][display]") {
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  Ends ends;
  winsize size{};
  size.ws_row = 30;
  size.ws_col = 60;
  REQUIRE(openpty(&ends.ours, &ends.displays, nullptr, nullptr, &size) == 0);
  auto experiment = search();
  auto display = Display::for_descriptor(ends.displays);
  run(experiment, display);
  unsetenv("NO_COLOR");

  const auto text = all_from(ends);

  CHECK(text.starts_with("\x1b[Jtune: max accuracy, 0.0 s, 1 trial: 1 running\r\n"));
  std::size_t redrawn = 0;
  for (auto at = text.find("A\r\x1b[J"); at != std::string::npos;
       at = text.find("A\r\x1b[J", at + 1))
    ++redrawn;
  CHECK(redrawn == 2);  // after a second, and at the end
  CHECK(text.find("\x1b[1m") == std::string::npos);
  CHECK(text.find("    0  terminated  1      0.25  0.25  0.5\r\n") != std::string::npos);
  CHECK(text.ends_with("  1 terminated, 0 stopped, 0 errored\r\n"));
}

TEST_CASE("a terminal that cannot move its cursor gets lines", "[tune][display]") {
  setenv("TERM", "dumb", 1);
  Ends ends;
  REQUIRE(openpty(&ends.ours, &ends.displays, nullptr, nullptr, nullptr) == 0);
  auto experiment = search();
  auto display = Display::for_descriptor(ends.displays);
  run(experiment, display);
  CHECK(all_from(ends).find('\x1b') == std::string::npos);
}

}  // namespace display_test
