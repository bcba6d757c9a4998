#include "output/render.hpp"

#include <limits>

#include <catch2/catch.hpp>

#include "text/format.hpp"

using namespace troupe;
using namespace troupe::tune;

namespace {

Overview sweep() {
  Overview overview{.objective = {"accuracy", Max}, .elapsed = Seconds(41.26)};
  overview.by_status = {1, 2, 5, 15, 1};
  overview.fields = {"lr", "batch"};
  overview.best = Overview::Row{.trial = 7,
                                .status = Status::Terminated,
                                .t = 27,
                                .last = 0.98,
                                .best = 0.98125,
                                .best_t = 26,
                                .values = {"0.0312", "64"}};
  overview.rows = {
      {.trial = 21,
       .status = Status::Running,
       .t = 3,
       .last = 0.91,
       .best = 0.92,
       .best_t = 2,
       .values = {"0.2", "32"}},
      {.trial = 23, .status = Status::Pending, .values = {"0.004", "128"}},
      {.trial = 20,
       .status = Status::Stopped,
       .t = 1,
       .last = 0.41,
       .best = 0.41,
       .best_t = 1,
       .values = {"0.9", "64"},
       .note =
           "stopped at rung 0 (t=1): accuracy 0.41 is below the cutoff 0.83, the best 1/3 of 9"},
      {.trial = 4,
       .status = Status::Errored,
       .values = {"0.9", "64"},
       .note = "std::runtime_error: no\ndata"}};
  overview.errored = {overview.rows[3]};
  overview.rungs = {
      {.rung = 0, .t = 1, .reached = 22, .stopped = 12, .not_finite = 1, .cutoff = 0.8456789},
      {.rung = 1, .t = 3, .reached = 8, .stopped = 2, .cutoff = 0.95},
      {.rung = 2, .t = 9, .reached = 0}};
  overview.folder = "results/run-1";
  return overview;
}

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
  return render_event(event, &trial, nullptr, {"accuracy", Max}).value_or("(nothing)\n");
}

std::string line_about(Event::Kind kind, const Trial& trial, const Trial* best, int attempt = 1,
                       std::string text = {}, Fault fault = Fault::Trial) {
  Event event{.kind = kind,
              .trial = trial.id,
              .attempt = attempt,
              .text = std::move(text),
              .now = Seconds(3.21)};
  event.fault = fault;
  return render_event(event, &trial, best, {"accuracy", Max}).value_or("(nothing)\n");
}

}  // namespace

TEST_CASE("the table of a run", "[tune][render]") {
  CHECK(render_table(sweep(), {.width = 100}) ==
        "tune: max accuracy, 41.3 s, 24 trials: 2 running, 1 pending, 5 terminated, 15 stopped, 1 "
        "errored\n"
        "best: trial 7, accuracy 0.9812 at t=26: lr=0.0312, batch=64\n"
        "stopped: 13 of 22 at t=1, 2 of 8 at t=3\n"
        "trial  status   t  accuracy  best     lr  batch  why\n"
        "   21  running  3      0.91  0.92    0.2     32\n"
        "   23  pending  0         -     -  0.004    128\n"
        "   20  stopped  1      0.41  0.41    0.9     64  stopped at rung 0 (t=1): accuracy 0.41 "
        "is below ...\n"
        "    4  errored  0         -     -    0.9     64  std::runtime_error: no data\n");
}

TEST_CASE("the table says what is under way, what each rung stopped, and what is left",
          "[tune][render]") {
  auto overview = sweep();
  overview.rows.clear();
  overview.ranks = 8;
  overview.to_come = 26;
  overview.left = Seconds(190);
  overview.rungs = {{.t = 1, .reached = 20, .stopped = 11, .not_finite = 1},
                    {.rung = 1, .t = 3, .reached = 6, .stopped = 3},
                    {.rung = 2, .t = 9},
                    {.bracket = 1, .t = 3, .reached = 3, .stopped = 0}};
  CHECK_THAT(render_table(overview, {.width = 100}),
             Catch::EndsWith("\n8 ranks at work; stopped: 12 of 20 at t=1, 3 of 9 at t=3; 26 to "
                             "come; about 3 min 10 s left\n"));
}

TEST_CASE("what is left is guessed from the trials that are over", "[tune][render]") {
  Experiment experiment({.objective = {"loss", Min}},
                        std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, 10),
                        fifo()({"loss", Min}, 1));
  const auto runs = [&](TrialId trial, double from) {
    experiment.next(Seconds(from));
    experiment.started(trial, Seconds(from));
    experiment.report(trial, 1, {{"loss", 1.0}}, {}, Seconds(from));
  };
  for (TrialId trial = 0; trial < 2; ++trial) {
    runs(trial, 0);
    experiment.ended(trial, Seconds(10));
  }
  runs(2, 10);
  runs(3, 10);
  CHECK_FALSE(overview_of(experiment, Seconds(14), 0, 2).left);  // two are too few
  experiment.ended(2, Seconds(20));
  runs(4, 18);
  const auto overview = overview_of(experiment, Seconds(20), 0, 2);
  CHECK(overview.ranks == 4);
  CHECK(overview.to_come == 5);
  // Ten seconds each: five to come, and 0 and 8 seconds of the two that run, two at once.
  CHECK(overview.left->count() == Approx(29));
}

TEST_CASE("a table on a narrow terminal marks that it leaves columns out", "[tune][render]") {
  const auto table = render_table(sweep(), {.width = 46});
  CHECK(table ==
        "tune: max accuracy, 41.3 s, 24 trials: 2 ru...\n"
        "best: trial 7, accuracy 0.9812 at t=26: lr=...\n"
        "stopped: 13 of 22 at t=1, 2 of 8 at t=3\n"
        "trial  status   t  accuracy  best     lr  >\n"
        "   21  running  3      0.91  0.92    0.2\n"
        "   23  pending  0         -     -  0.004\n"
        "   20  stopped  1      0.41  0.41    0.9\n"
        "    4  errored  0         -     -    0.9\n");
}

TEST_CASE("no line of a table is wider than the terminal, whatever stands in it",
          "[tune][render]") {
  const auto width = GENERATE(range(0u, 130u));
  auto overview = sweep();
  overview.rows[0].values[0] = "größer\x1b[31m als das Feld\n";
  const auto table = render_table(overview, {.width = width});
  for (std::size_t start = 0, end = 0; (end = table.find('\n', start)) != std::string::npos;
       start = end + 1) {
    REQUIRE(width_of(table.substr(start, end - start)) <= width);
  }
  CHECK(table.find('\x1b') == std::string::npos);
}

TEST_CASE("colour stands around words and changes none", "[tune][render]") {
  auto coloured_table = render_table(sweep(), {.width = 100, .colour = true});
  CHECK(coloured_table.find("\x1b[36mrunning\x1b[0m") != std::string::npos);
  for (auto at = coloured_table.find('\x1b'); at != std::string::npos;
       at = coloured_table.find('\x1b')) {
    coloured_table.erase(at, coloured_table.find('m', at) - at + 1);
  }
  CHECK(coloured_table == render_table(sweep(), {.width = 100}));
}

TEST_CASE("a run that has just begun has a table too", "[tune][render]") {
  CHECK(render_table({.objective = {"loss", Min}}, {}) ==
        "tune: min loss, 0.0 s, 0 trials\nbest: none yet\n");
}

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
  CHECK(line_about(Event::Kind::Ended, trial, nullptr) ==
        "[  3.2 s] trial 3 ended with the run: ended by the user (SIGINT). No best yet.\n");
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
  CHECK(line_about(Kind::Ended, trial, &best) ==
        "[  3.2 s] trial 7 finished: trained to max_t=27; best accuracy 0.5 at t=2. Best: trial 3 "
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
  CHECK(render_event(gone, &trial, nullptr, {}) ==
        "[  3.2 s] trial 5 lost its checkpoint (rank 0 does not find x); it goes on from its own "
        "t=6\n");
  gone.decision = Exploit{.donor = 2};
  CHECK(render_event(gone, &trial, nullptr, {}) ==
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

TEST_CASE("the summary says how often the cluster lost a trial, and why last", "[tune][render]") {
  auto overview = sweep();
  overview.restarts = 2;
  overview.restarted = {11, "process 7 was lost\nwith node 2"};
  CHECK(render_summary(overview, {})
            .find("  2 restarts after failures of the cluster; the last of trial 11: process 7 was "
                  "lost with node 2\n") != std::string::npos);
  CHECK(render_summary(sweep(), {}).find("restart") == std::string::npos);
}

TEST_CASE("the summary says what won and why the others stopped", "[tune][render]") {
  CHECK(render_summary(sweep(), {}) ==
        "tune: 24 trials in 41.3 s\n"
        "  best: trial 7, accuracy 0.9812 at t=26\n"
        "    lr = 0.0312\n"
        "    batch = 64\n"
        "  5 terminated, 15 stopped, 1 errored\n"
        "    rung 0 (t=1): 22 judged, 13 stopped: 12 below the cutoff, 1 not finite; the cutoff is "
        "0.8457 now\n"
        "    rung 1 (t=3): 8 judged, 2 stopped: 2 below the cutoff; the cutoff is 0.95 now\n"
        "    rung 2 (t=9): 0 judged, 0 stopped\n"
        "    trial 4 errored: std::runtime_error: no data\n"
        "  results: results/run-1\n");
}

TEST_CASE("the summary of a population shows the schedule that won, takeovers, pauses and notices",
          "[tune][render]") {
  Overview overview{.objective = {"accuracy", Max}, .elapsed = Seconds(20)};
  overview.by_status = {0, 0, 4, 0, 0, 0};
  overview.fields = {"lr", "momentum"};
  overview.best = Overview::Row{.trial = 5, .best = 0.75, .best_t = 12, .values = {"0.037", "0.9"}};
  overview.takeovers = 3;
  overview.pauses = 1;
  overview.schedule = {{0, 2, {{"lr", 0.031}, {"momentum", 0.9}}},
                       {8, 5, {{"lr", 0.037}, {"momentum", 0.9}}}};
  overview.notices = {"the nodes do not share the run's folder", "the report has no checkpoint"};
  CHECK(render_summary(overview, {}) ==
        "tune: 4 trials in 20.0 s\n"
        "  best: trial 5, accuracy 0.75 at t=12\n"
        "    lr = 0.037\n"
        "    momentum = 0.9\n"
        "    its schedule:\n"
        "      from the start: lr=0.031, momentum=0.9 (trial 2)\n"
        "      after t=8: lr=0.037, momentum=0.9 (trial 5)\n"
        "  4 terminated, 0 stopped, 0 errored\n"
        "  3 takeovers, 1 pause\n"
        "  note: the nodes do not share the run's folder\n"
        "  note: the report has no checkpoint\n");
}

TEST_CASE("a table shows who is paused, and why", "[tune][render]") {
  Overview overview{.objective = {"accuracy", Max}};
  overview.by_status = {0, 1, 0, 0, 0, 2};
  overview.rows = {{.trial = 5, .status = Status::Paused, .t = 8, .note = "others are behind"}};
  CHECK(render_table(overview, {}) ==
        "tune: max accuracy, 0.0 s, 3 trials: 1 running, 2 paused\n"
        "best: none yet\n"
        "trial  status  t  accuracy  best  why\n"
        "    5  paused  8         -     -  others are behind\n");
}

TEST_CASE("a summary without a winner, cut short, of several brackets", "[tune][render]") {
  Overview overview{.objective = {"loss", Min}, .elapsed = Seconds(3725)};
  overview.by_status = {0, 0, 0, 1, 7};
  overview.errored.resize(5);
  overview.rungs = {{.bracket = 0, .rung = 0, .t = 1, .reached = 1, .stopped = 1, .cutoff = 2},
                    {.bracket = 1, .rung = 0, .t = 3}};
  overview.ended_early = "ended by the user (SIGINT)";
  overview.ended_with_run = 1;
  CHECK(render_summary(overview, {}) ==
        "tune: 8 trials in 1 h 2 min\n"
        "  ended early: ended by the user (SIGINT)\n"
        "  best: none; no trial reported a finite 'loss'\n"
        "  0 terminated, 1 stopped (1 as the run ended), 7 errored\n"
        "    bracket 0 rung 0 (t=1): 1 judged, 1 stopped: 1 above the cutoff; the cutoff is 2 now\n"
        "    bracket 1 rung 0 (t=3): 0 judged, 0 stopped\n"
        "    trial 0 errored: \n    trial 0 errored: \n    trial 0 errored: \n    trial 0 errored: "
        "\n    trial 0 errored: \n"
        "    and 2 more\n");
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
