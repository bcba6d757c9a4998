#include "output/render.hpp"

#include <limits>

#include <catch2/catch.hpp>

#include "text/format.hpp"

namespace render_lines_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

Trial trial_seven() {
  Trial trial{
      .id = 7, .config = {{"lr", 0.0312}, {"batch", 64}}, .status = Status::Stopped, .t = 3};
  trial.best = 0.5;
  trial.best_t = 2;
  trial.reason =
      "stopped at rung 1 (t=3): accuracy 0.41 is below the cutoff 0.83, the best 1/3 of 9";
  return trial;
}

/// After it took over trial 2.
Trial trial_five() {
  Trial trial{.id = 5,
              .config = {{"lr", 0.037}, {"momentum", 0.9}},
              .status = Status::Running,
              .attempt = 2,
              .t = 8};
  trial.takeovers = {{.t = 8,
                      .donor = 2,
                      .checkpoint_t = 8,
                      .checkpoint = "trials/2/8",
                      .donor_config = {{"lr", 0.031}, {"momentum", 0.9}},
                      .before = {{"lr", 0.5}, {"momentum", 0.1}},
                      .after = trial.config}};
  return trial;
}

std::string line_about_decision(Event::Kind kind, const Trial& trial, Decision decision) {
  Event event{.kind = kind, .trial = trial.id, .attempt = trial.attempt, .now = Seconds(3.21)};
  event.decision = std::move(decision);
  return render_event(event, &trial, {nullptr, {"accuracy", Max}}).value_or("(nothing)\n");
}

std::string line_about(Event::Kind kind, const Trial& trial, const Trial* best, int attempt = 1,
                       std::string text = {}, Fault fault = Fault::Trial) {
  Event event{.kind = kind,
              .trial = trial.id,
              .attempt = attempt,
              .text = std::move(text),
              .now = Seconds(3.21)};
  event.fault = fault;
  return render_event(event, &trial, {best, {"accuracy", Max}}).value_or("(nothing)\n");
}

}  // namespace

TEST_CASE("a trial that was under way when its run was killed has a line of its own",
          "[tune][render]") {
  Trial trial{.id = 3, .attempt = 1, .t = 6};
  CHECK(line_about(Event::Kind::Requeued, trial, nullptr) ==
        "[  3.2 s] trial 3 was under way at t=6, and begins again: it has no checkpoint\n");
  trial.checkpoint = "trials/3/4";
  trial.checkpoint_t = 4;
  CHECK(line_about(Event::Kind::Requeued, trial, nullptr) ==
        "[  3.2 s] trial 3 was under way at t=6, and goes on from its checkpoint of t=4\n");
  trial.status = Status::Stopped;
  trial.reason = "the run ended: ended by the user (SIGINT)";
  trial.ended_with_run = true;
  CHECK(line_about(Event::Kind::Ended, trial, nullptr) ==
        "[  3.2 s] trial 3 unstarted: the run ended: ended by the user (SIGINT). No best yet.\n");
  trial.has_started = true;
  CHECK(line_about(Event::Kind::Ended, trial, nullptr) ==
        "[  3.2 s] trial 3 unfinished: the run ended: ended by the user (SIGINT). No best yet.\n");
}

TEST_CASE("a trial of a run with several objectives ends without the word best", "[tune][render]") {
  Trial trial{.id = 7};
  trial.status = Status::Terminated;
  trial.best = 0.5;
  trial.best_t = 3;
  const Event ended{.kind = Event::Kind::Ended, .trial = 7, .attempt = 1, .now = Seconds(3.21)};
  CHECK(render_event(ended, &trial, {&trial, {"loss", Min}, true}) ==
        "[  3.2 s] trial 7 terminated; lowest loss 0.5 at t=3. Lowest loss: 0.5 of trial 7.\n");
  CHECK(render_event(ended, &trial, {nullptr, {"loss", Min}, true}) ==
        "[  3.2 s] trial 7 terminated; lowest loss 0.5 at t=3. No loss yet.\n");
}

TEST_CASE("a trial whose metric was never finite says so", "[tune][render]") {
  Trial trial{.id = 3, .status = Status::Terminated, .t = 2};
  trial.history = {{1, std::numeric_limits<double>::quiet_NaN()},
                   {2, std::numeric_limits<double>::infinity()}};
  CHECK(line_about(Event::Kind::Ended, trial, nullptr) ==
        "[  3.2 s] trial 3 terminated; its accuracy was never finite. No best yet.\n");
}

TEST_CASE("a trial that goes on in a larger gang has a line", "[tune][render]") {
  Trial trial{.id = 3, .status = Status::Running, .t = 6, .checkpoint_t = 6, .workers = 4};
  CHECK(line_about(Event::Kind::Started, trial, nullptr, 2) ==
        "[  3.2 s] trial 3 goes on after t=6 with 4 workers\n");
}

TEST_CASE("lines where there is no terminal", "[tune][render]") {
  auto trial = trial_seven();
  Trial best{.id = 3};
  best.best = 0.9;
  using Kind = Event::Kind;

  CHECK(line_about(Kind::Started, trial, nullptr) ==
        "[  3.2 s] trial 7 started: lr=0.0312, batch=64\n");
  trial.retried = true;
  CHECK(line_about(Kind::Started, trial, nullptr, 2) ==
        "[  3.2 s] trial 7 started (attempt 2): lr=0.0312, batch=64\n");
  CHECK(line_about(Kind::Launched, trial, nullptr) == "(nothing)\n");
  CHECK(line_about(Kind::Reported, trial, nullptr) == "(nothing)\n");
  CHECK(line_about(Kind::Ended, trial, &best) ==
        "[  3.2 s] trial 7 stopped at rung 1 (t=3): accuracy 0.41 is below the cutoff 0.83, the "
        "best 1/3 of 9; best accuracy 0.5 at t=2. Best: trial 3 with accuracy 0.9.\n");
  trial.status = Status::Terminated;
  trial.reason = "trained to max_t=27";
  CHECK(
      line_about(Kind::Ended, trial, &best) ==
      "[  3.2 s] trial 7 terminated: trained to max_t=27; best accuracy 0.5 at t=2. Best: trial 3 "
      "with accuracy 0.9.\n");
  trial.status = Status::Pending;
  CHECK(
      line_about(Kind::Failed, trial, nullptr, 1, "rank 1 was killed by signal 9") ==
      "[  3.2 s] trial 7 failed (attempt 1), will be tried again: rank 1 was killed by signal 9\n");
  CHECK(line_about(Kind::Failed, trial, nullptr, 1, "process 7 was lost with node 2",
                   Fault::System) ==
        "[  3.2 s] trial 7 was lost by the cluster (attempt 1), will be started again: process 7 "
        "was lost with node 2\n");
  trial.status = Status::Errored;
  trial.error = "std::runtime_error: no data";
  const Event failed{.kind = Event::Kind::Failed, .trial = 7, .attempt = 1, .now = Seconds(3.21)};
  CHECK(render_event(failed, &trial, {nullptr, {"accuracy", Max}}, TrialId{2}) ==
        "[  3.2 s] trial 7 errored as trial 2 did. No best yet.\n");
  CHECK(line_about(Kind::Failed, trial, nullptr, 2, trial.error) ==
        "[  3.2 s] trial 7 errored: std::runtime_error: no data. No best yet.\n");
  CHECK(line_about(Kind::Closed, trial, nullptr, 0, "ended by the user (SIGINT)") ==
        "[  3.2 s] the run ends: ended by the user (SIGINT)\n");
}

TEST_CASE("a takeover is a line with both trials and what changed", "[tune][render]") {
  using Kind = Event::Kind;
  auto trial = trial_five();
  const Exploit exploit{
      .donor = 2, .checkpoint = "trials/2/8", .checkpoint_t = 8, .config = trial.config};
  const std::string line =
      "[  3.2 s] trial 5 takes over trial 2 at t=8: lr 0.031 -> 0.037, momentum kept\n";

  CHECK(line_about_decision(Kind::Reported, trial, exploit) == line);
  CHECK(line_about_decision(Kind::Launched, trial, exploit) == line);  // it was paused until now
  trial.takeovers[0].checkpoint_t = 6;
  CHECK(line_about_decision(Kind::Reported, trial, exploit) ==
        "[  3.2 s] trial 5 takes over trial 2 at t=8 (from its t=6): lr 0.031 -> 0.037, momentum "
        "kept\n");
}

TEST_CASE("trials that take turns leave no lines", "[tune][render]") {
  using Kind = Event::Kind;
  auto trial = trial_five();
  CHECK(line_about_decision(Kind::Reported, trial, Pause{"others are behind"}) == "(nothing)\n");
  CHECK(line_about_decision(Kind::Launched, trial, GoOn{}) == "(nothing)\n");
  CHECK(line_about(Kind::Started, trial, nullptr, 2) == "(nothing)\n");

  trial.takeovers.clear();
  trial.status = Status::Paused;
  trial.pauses = 1;
  CHECK(line_about(Kind::Ended, trial, nullptr) == "(nothing)\n");
  // It did not end by itself.
  CHECK(line_about(Kind::Failed, trial, nullptr, 1, "killed") == "(nothing)\n");
  trial.status = Status::Running;
  CHECK(line_about(Kind::Started, trial, nullptr, 2) == "(nothing)\n");
}

TEST_CASE("a trial that its scheduler chose to go on leaves a line with the reason",
          "[tune][render]") {
  auto trial = trial_five();
  trial.takeovers.clear();
  const GoOn chosen{
      "promoted from rung 0 (t=1): loss 0.3 is place 1 of 6, the best 2 go on", 0, {}};
  CHECK(line_about_decision(Event::Kind::Launched, trial, chosen) ==
        "[  3.2 s] trial 5 resumed: promoted from rung 0 (t=1): loss 0.3 is place 1 of 6, the best "
        "2 go on\n");
  CHECK(line_about_decision(Event::Kind::Reported, trial, chosen) == "(nothing)\n");
  const GoOn in_turn{.why = "of those that wait it is furthest behind, at t=4"};
  CHECK(line_about_decision(Event::Kind::Launched, trial, in_turn) == "(nothing)\n");
}

TEST_CASE("what people should know is a line, and so is a checkpoint that is gone",
          "[tune][render]") {
  using Kind = Event::Kind;
  auto trial = trial_five();
  CHECK(line_about_decision(Kind::Reported, trial, GoOn{.why = "judged at t=8"}) == "(nothing)\n");
  CHECK(
      line_about_decision(Kind::Reported, trial, GoOn{.notice = "the report has no checkpoint"}) ==
      "[  3.2 s] trial 5: the report has no checkpoint\n");

  trial.status = Status::Pending;
  Event gone{.kind = Kind::Failed,
             .trial = 5,
             .attempt = 2,
             .text = "rank 0 does not find x",
             .now = Seconds(3.21)};
  gone.fault = Fault::Checkpoint;
  gone.decision = GoOn{.why = "it goes on from its own t=6"};
  CHECK(render_event(gone, &trial, {}) ==
        "[  3.2 s] trial 5 lost its checkpoint (rank 0 does not find x); it goes on from its own "
        "t=6\n");
  gone.decision = Exploit{.donor = 2};
  CHECK(render_event(gone, &trial, {}) ==
        "[  3.2 s] trial 5 lost its checkpoint (rank 0 does not find x); trial 5 takes over trial "
        "2 at t=8: lr 0.031 -> 0.037, momentum kept\n");
}

TEST_CASE("lines show real numbers with four digits", "[tune][render]") {
  auto trial = trial_seven();
  trial.config = {{"lr", 0.027776678582869443},
                  {"decay", 1.0 / 3e7},
                  {"steps", 123456.0},
                  {"batch", 123456789}};
  CHECK(line_about(Event::Kind::Started, trial, nullptr) ==
        "[  3.2 s] trial 7 started: lr=0.02778, decay=3.333e-08, steps=123456, batch=123456789\n");
}

TEST_CASE("numbers, times and texts as people read them", "[tune][render]") {
  CHECK(short_number(0.98125) == "0.9812");
  CHECK(short_number(1e-5) == "1e-05");
  CHECK(short_number(0.027776678582869443) == "0.02778");
  CHECK(short_number(123456) == "123456");
  CHECK(short_number(1234567.25) == "1.235e+06");
  CHECK(short_number(std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(short_time(Seconds(0.04)) == "0.0 s");
  CHECK(short_time(Seconds(99.96)) == "1 min 40 s");
  CHECK(short_time(Seconds(7322)) == "2 h 2 min");
  CHECK(width_of("grüße") == 5);
  CHECK(clipped("grüße", 5) == "grüße");
  CHECK(clipped("grüße", 4) == "g...");
  CHECK(clipped("abc", 2) == "..");
  CHECK(padded("ü", 3, true) == "  ü");
}

}  // namespace render_lines_test
