#include "output/render.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "text/format.hpp"

namespace render_table_test {

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

TEST_CASE("a run of several objectives leads with its front, and calls no trial the best",
          "[tune][render]") {
  auto overview = sweep();
  overview.objectives = {{"accuracy", Max}, {"latency", Min}};
  overview.front_size = 1;
  overview.front = {"trial 7: accuracy 0.9813, latency 3"};
  const auto table = render_table(overview, {.width = 100});
  CHECK_THAT(table, Catch::StartsWith("tune: max accuracy and min latency, 41.3 s, 24 trials") &&
                        Catch::Contains("\nhighest accuracy: trial 7, accuracy 0.9812 at t=26: "
                                        "lr=0.0312, batch=64\n"));
  const auto summary = render_summary(overview, {});
  CHECK_THAT(summary, Catch::StartsWith("tune: 24 trials in 41.3 s\n"
                                        "  Pareto front: 1 of 24 trials\n"
                                        "    trial 7: accuracy 0.9813, latency 3\n"
                                        "  highest accuracy: trial 7, accuracy 0.9812 at t=26\n"));
  overview.best.reset();
  CHECK_THAT(render_table(overview, {}), Catch::Contains("\nhighest accuracy: none yet\n"));
  CHECK_THAT(render_summary(overview, {}),
             Catch::Contains("  highest accuracy: none; no trial reported a finite 'accuracy'\n"));
}

TEST_CASE("where each trial with a value failed, the summary says so", "[tune][render]") {
  auto overview = sweep();
  overview.best.reset();
  overview.have_all_failed = true;
  CHECK_THAT(
      render_summary(overview, {}),
      Catch::Contains("  best: none; each trial that reported a finite 'accuracy' failed\n"));
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

TEST_CASE("the table says what the gangs of the search hold of the cluster", "[tune][render]") {
  const auto progress_with = [](const InUse& in_use) {
    auto overview = sweep();
    overview.rows.clear();
    overview.rungs.clear();
    overview.ranks = 2;
    overview.to_come = 3;
    overview.in_use = in_use;
    const auto table = render_table(overview, {.width = 100});
    const auto from = table.find('\n', table.find("best:")) + 1;
    return table.substr(from);
  };
  CHECK(progress_with({.ranks = 8, .cpus = 8, .cluster_cpus = 16, .cluster_gpus = 0}) ==
        "8 ranks at work on 8 of 16 CPUs; 3 to come\n");
  CHECK(
      progress_with({.ranks = 3, .cpus = 6, .gpus = 1.5, .cluster_cpus = 16, .cluster_gpus = 4}) ==
      "3 ranks at work on 6 of 16 CPUs and 1.5 of 4 GPUs; 3 to come\n");
  // The cluster has GPUs, and the search none of them.
  CHECK(progress_with({.ranks = 1, .cpus = 1, .cluster_cpus = 1, .cluster_gpus = 1}) ==
        "1 rank at work on 1 of 1 CPU and 0 of 1 GPU; 3 to come\n");
  // The head has not said what there is.
  CHECK(progress_with({.ranks = 2, .cpus = 1, .gpus = 2}) ==
        "2 ranks at work on 1 CPU and 2 GPUs; 3 to come\n");
  CHECK(progress_with({.ranks = 2, .cluster_cpus = 16, .cluster_gpus = 0}) ==
        "2 ranks at work; 3 to come\n");
  CHECK(progress_with({.cluster_cpus = 16, .cluster_gpus = 2}) == "3 to come\n");
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

TEST_CASE("the summary names the checkpoint of the best report, and its t where that differs",
          "[tune][render]") {
  auto overview = sweep();
  overview.best_checkpoint = "results/run-1/trials/7/26";
  overview.best_checkpoint_t = 26;
  CHECK_THAT(render_summary(overview, {}),
             Catch::Contains("    batch = 64\n    its checkpoint: results/run-1/trials/7/26\n"));
  overview.best_checkpoint_t = 24;
  CHECK_THAT(render_summary(overview, {}),
             Catch::Contains("\n    its checkpoint (of t=24): results/run-1/trials/7/26\n"));
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

TEST_CASE("a table of a run that nobody runs calls no trial running", "[tune][render]") {
  Overview overview{.objective = {"loss", Min}};
  overview.by_status = {1, 1};
  overview.rows = {{.trial = 0, .status = Status::Running, .t = 8}};
  overview.ranks = 4;
  overview.to_come = 3;
  overview.left = Seconds(60);
  CHECK_THAT(render_table(overview, {}), Catch::Contains("1 running, 1 pending") &&
                                             Catch::Contains("4 ranks at work; 3 to come; about"));
  overview.is_abandoned = true;
  CHECK(render_table(overview, {}) ==
        "tune: min loss, 0.0 s, 2 trials: 1 interrupted, 1 pending\n"
        "best: none yet\n"
        "3 to come\n"
        "trial  status       t  loss  best  why\n"
        "    0  interrupted  8     -     -\n");
}

TEST_CASE("a summary without a winner, cut short, of several brackets", "[tune][render]") {
  Overview overview{.objective = {"loss", Min}, .elapsed = Seconds(3725)};
  overview.by_status = {0, 0, 0, 0, 7};
  overview.errored.resize(5);
  overview.rungs = {{.bracket = 0, .rung = 0, .t = 1, .reached = 1, .stopped = 1, .cutoff = 2},
                    {.bracket = 1, .rung = 0, .t = 3}};
  overview.ended_early = "ended by the user (SIGINT)";
  overview.unfinished = 1;
  CHECK(render_summary(overview, {}) ==
        "tune: 8 trials in 1 h 2 min\n"
        "  ended early: ended by the user (SIGINT)\n"
        "  best: none; no trial reported a finite 'loss'\n"
        "  0 terminated, 0 stopped, 7 errored, 1 unfinished\n"
        "    bracket 0 rung 0 (t=1): 1 judged, 1 stopped: 1 above the cutoff; the cutoff is 2 now\n"
        "    bracket 1 rung 0 (t=3): 0 judged, 0 stopped\n"
        "    trial 0 errored: \n    trial 0 errored: \n    trial 0 errored: \n    trial 0 errored: "
        "\n    trial 0 errored: \n"
        "    and 2 more\n");
}

TEST_CASE("the summary shows one and the same error once, with the number of its trials",
          "[tune][render]") {
  const Objective objective{"loss", Min};
  Experiment experiment{{.objective = objective},
                        std::make_unique<RandomSearcher>(SearchSpace{{"lr", 0.5}}, 1, 4),
                        fifo()(objective, 1)};
  for (TrialId trial = 0; trial < 4; ++trial) {
    experiment.next(Seconds(0));
    experiment.started(trial, Seconds(0));
    const auto cause = trial == 2 ? "no disk" : "no memory";
    experiment.failed(trial, fmt::format("{} (rank 0 of 1, pid {} on node 1)", cause, 10 + trial),
                      Fault::Final, Seconds(1));
  }
  auto overview = overview_of(experiment, Seconds(1), 0);
  overview.folder = "results/run-1";
  CHECK_THAT(render_summary(overview, {}),
             Catch::Contains("    trial 0 errored: no memory (rank 0 of 1, pid 10 on node 1)\n"
                             "      and 2 more trials alike\n"
                             "    trial 2 errored: no disk (rank 0 of 1, pid 12 on node 1)\n"
                             "    the error of each trial is in summary.json of the results\n"));
}

TEST_CASE("a summary of a run that was cut short says how to go on with it", "[tune][render]") {
  Overview overview{.objective = {"loss", Min}, .elapsed = Seconds(1)};
  overview.ended_early = "ended by the user (SIGINT)";
  overview.may_go_on = true;
  CHECK_THAT(render_summary(overview, {}), !Catch::Contains("to go on"));  // nothing was kept
  overview.folder = "results/run-1";
  CHECK_THAT(render_summary(overview, {}),
             Catch::EndsWith("  results: results/run-1\n  to go on with it: the same program with "
                             ".resume = true, or tune::resume on that folder\n"));
}

TEST_CASE("a summary of a run in which nothing but failures came does not say to go on with it",
          "[tune][render]") {
  Overview overview{.objective = {"loss", Min}, .elapsed = Seconds(1)};
  overview.ended_early = "the first 8 trials all failed without a report of 'loss', and alike";
  overview.may_go_on = true;
  overview.folder = "results/run-1";
  overview.by_status[static_cast<std::size_t>(Status::Errored)] = 8;
  CHECK_THAT(render_summary(overview, {}),
             !Catch::Contains("to go on") &&
                 Catch::EndsWith("  no trial reported a value: mend what failed and begin a new "
                                 "run, rather than go on with this one\n"));
  overview.unfinished = 8;  // as where Ctrl-C comes early
  CHECK_THAT(render_summary(overview, {}), Catch::Contains("to go on with it: "));
  overview.unfinished = 0;
  overview.have_all_failed = true;  // after reports
  CHECK_THAT(render_summary(overview, {}), Catch::Contains("to go on with it: "));
}

}  // namespace render_table_test
