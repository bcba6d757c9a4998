#include "progress/progress_line.hpp"

#include <string>

#include "support/catch.hpp"

namespace progress_line_test {

using namespace troupe::train;
using Catch::Contains;

ProgressView half_way() {
  ProgressView view{.label = "fit", .metrics = {{"loss", 0.12345}, {"accuracy", 0.5}}};
  view.estimate.on({.epoch = 2,
                    .epochs = 4,
                    .ended_epochs = 1,
                    .done = 50,
                    .total = 100,
                    .unit = "steps",
                    .timed_steps = 149,
                    .timed_rows = 149 * 64,
                    .steps_s = 14.9},
                   15);
  view.elapsed_s = 75;
  return view;
}

TEST_CASE("a line says epoch, percent, rate, times and metrics", "[train][progress]") {
  CHECK(
      render_progress(half_way(), 15, 94) ==
      "fit  epoch 2/4 [######...........]  37%  640 rows/s  1:15  ETA 0:25  loss 0.1235  accuracy "
      "0.5");
}

TEST_CASE("the bar takes the room that is left, up to 40 columns", "[train][progress]") {
  const auto line = render_progress(half_way(), 15, 500);
  CHECK_THAT(line, Contains("[" + std::string(15, '#') + std::string(25, '.') + "]"));
  CHECK(line == render_progress(half_way(), 15, 600));
}

TEST_CASE("no line is wider than the terminal, and what matters least goes first",
          "[train][progress]") {
  auto view = half_way();
  view.label = "über";
  view.metrics.emplace_back("a_metric_with_a_very_long_name", 1e-7);
  CHECK_THAT(render_progress(view, 15, 200),
             Contains("a_metric_with_a_ver.. 1e-07") || Contains("a_metric_with_a_ve.. 1e-07"));
  for (std::size_t columns = 0; columns < 120; ++columns) {
    const auto line = render_progress(view, 15, columns);
    const auto wide =
        std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
    CAPTURE(columns, line);
    CHECK(static_cast<std::size_t>(wide) <= columns);
  }
  CHECK_THAT(render_progress(view, 15, 79), Contains("ETA 0:25") && !Contains("a_metric"));
  CHECK(render_progress(view, 15, 33) == "epoch 2/4  37%  ETA 0:25");
  CHECK(render_progress(view, 15, 36) == "epoch 2/4  37%  640 rows/s  ETA 0:25");
}

TEST_CASE("a run that has ended says its mean rate and whether it was stopped",
          "[train][progress]") {
  auto view = half_way();
  view.has_ended = true;
  view.is_stopped = true;
  view.metrics.clear();
  CHECK_THAT(render_progress(view, 15, 79), Catch::EndsWith(" 640 rows/s  1:15  stopped"));
}

TEST_CASE("a run without epochs counts its steps, and one without steps its reports",
          "[train][progress]") {
  ProgressView view{.label = "play", .reports = 1};
  CHECK(render_progress(view, 0, 79) == "play  1 report  0:00");
  view.estimate.on({.done = 1500, .unit = "games", .timed_steps = 1000, .steps_s = 2000}, 2000);
  CHECK(render_progress(view, 2000, 79) == "play  1,500 games  0.50 games/s  0:00");
  view.estimate.on(
      {.done = 1500, .total = 2000, .unit = "games", .timed_steps = 1000, .steps_s = 2000}, 2000);
  CHECK_THAT(
      render_progress(view, 2000, 79),
      (Contains("play  1,500/2,000 games [") && Contains("#]  75%  0.50 games/s  0:00  ETA")) ||
          Contains("]  75%  0.50 games/s  0:00  ETA 16:40"));
}

TEST_CASE("what a program calls things cannot move the cursor", "[train][progress]") {
  auto view = half_way();
  view.label = "fit\x1b[2J\n";
  view.metrics = {{"lo\nss", 1}};
  const auto line = render_progress(view, 15, 100);
  CHECK(line.find('\x1b') == std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("numbers and times are short", "[train][progress]") {
  CHECK(short_number(3119.6) == "3,120");
  CHECK(short_number(1234567) == "1,234,567");
  CHECK(short_number(99.96) == "100");
  CHECK(short_number(31.24) == "31.2");
  CHECK(short_number(9.999) == "10.0");
  CHECK(short_number(0.5) == "0.50");
  CHECK(short_number(0.01234) == "0.0123");
  CHECK(clock_time(7.9) == "0:07");
  CHECK(clock_time(754) == "12:34");
  CHECK(clock_time(3723) == "1:02:03");
  CHECK(clock_time(2 * 86'400 + 3723) == "2 d 01:02:03");
  CHECK(clock_time(1e300) == "?");
  CHECK(label_of_function("{anonymous}::fit") == "fit");
  CHECK(label_of_function("(anonymous namespace)::fit<a::b>") == "fit");
  CHECK(label_of_function("fit") == "fit");
}

}  // namespace progress_line_test
