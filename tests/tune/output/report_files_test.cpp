#include "output/report_files.hpp"
#include "output/folder/earlier_run.hpp"
#include "output/folder/run_folder.hpp"

#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

#include <troupe/tune/schedulers/asha.hpp>

#include "experiment/journal.hpp"
#include "python.hpp"
#include "support/scheduler.hpp"
#include "support/temporary_folder.hpp"

namespace report_files_test {

using namespace troupe;
using namespace troupe::tune;

namespace {

// The size is one that no double holds.
const SearchSpace kSpace{{"lr", 0.5}, {"name", "a \"b\", c"}, {"size", 1152921504606846977}};

Experiment search() {
  const Objective objective{"accuracy", Max};
  return {{.objective = objective},
          std::make_unique<RandomSearcher>(kSpace, 1, 2),
          asha({.max_t = 9, .eta = 3})(objective, 1)};
}

/// Two trials: one of three reports, one that is nan and stopped.
void run(Experiment& experiment, ReportFiles& files) {
  experiment.observe([&](const Event& event, const Trial* trial) { files.write(event, trial); });
  experiment.next(Seconds(0));
  experiment.started(0, Seconds(0));
  experiment.report(0, 1, {{"accuracy", 0.25}}, {}, Seconds(1));
  experiment.report(0, 2, {{"accuracy", 0.5}, {"trial", 7}, {"time, s", 3}}, "checkpoints/2",
                    Seconds(2));
  experiment.next(Seconds(2));
  experiment.started(1, Seconds(2));
  experiment.report(1, 1, {{"accuracy", std::numeric_limits<double>::quiet_NaN()}}, {}, Seconds(3));
  experiment.ended(1, Seconds(3));
  experiment.report(0, 9, {{"accuracy", 0.75}}, {}, Seconds(4));
  experiment.ended(0, Seconds(4));
}

}  // namespace

TEST_CASE("Python reads every report, as CSV and as JSON lines, and finds the same",
          "[tune][reports]") {
  TemporaryFolder folder;
  auto experiment = search();
  auto files = ReportFiles::begin(folder.path(), kSpace, RunParams(Json{{"seed", 1}}, {}), "{}");
  run(experiment, files);
  CHECK(files.flush().empty());
  files.write_summary(experiment, Seconds(5));

  const auto said = test::python(folder.path(), R"(
import csv, json, math
rows = list(csv.DictReader(open('reports.csv', newline='')))
lines = [json.loads(line) for line in open('reports.jsonl')]
assert len(rows) == len(lines) == 4, (rows, lines)
for row, line in zip(rows, lines):
    assert int(row['trial']) == line['trial'] and int(row['t']) == line['t'] and float(row['time_s']) == line['time_s']
    assert float(row['config/lr']) == line['config']['lr'] == 0.5
    assert row['config/name'] == line['config']['name'] == 'a "b", c'
    assert int(row['config/size']) == line['config']['size'] == 2**60 + 1
    assert row['decision'] == line['decision'] and row['reason'] == line.get('reason', '')
    assert row['rung'] == str(line.get('rung', ''))
    assert row['accuracy'] == str(line['metrics']['accuracy'])
assert rows[1]['metric/trial'] == '7.0' or float(rows[1]['metric/trial']) == 7, rows[1]
assert float(rows[1]['time, s']) == 3 and rows[0]['time, s'] == '' and rows[3]['time, s'] == ''
assert lines[1]['checkpoint'] == 'checkpoints/2'
assert math.isnan(float(rows[2]['accuracy'])) and rows[2]['decision'] == 'stop'
print([ (r['trial'], r['t'], r['decision'], r['reason']) for r in rows ])
summary = json.load(open('summary.json'))
assert summary['best']['trial'] == 0 and summary['best']['best'] == 0.75 and summary['seconds'] == 5
assert [t['status'] for t in summary['trials']] == ['terminated', 'stopped']
assert summary['rungs'][0]['judged'] == 2 and summary['rungs'][0]['not_finite'] == 1
assert summary['best']['config']['size'] == 2**60 + 1, summary['best']
assert json.load(open('params.json'))['seed'] == 1
journal = [json.loads(line) for line in open('journal.jsonl')]
assert [e['config']['size'] for e in journal if e.get('event') == 'launched'] == [2**60 + 1] * 2
print([e.get('event') for e in journal])
)");

  CHECK(said ==
        "[('0', '1', 'continue', 'passed rung 0 (t=1): accuracy 0.25 is the first there'), ('0', "
        "'2', 'continue', ''), "
        "('1', '1', 'stop', 'stopped at rung 0 (t=1): accuracy is nan'), ('0', '9', 'finish', "
        "'trained to max_t=9')]\n"
        "[None, 'launched', 'started', 'reported', 'reported', 'launched', 'started', 'reported', "
        "'ended', 'reported', "
        "'ended']\n");
}

TEST_CASE("Python finds two metrics in two columns and keys, whatever their names are",
          "[tune][reports]") {
  TemporaryFolder folder;
  auto experiment = search();
  auto files = ReportFiles::begin(folder.path(), kSpace, RunParams(Json{{"seed", 1}}, {}), "{}");
  experiment.observe([&](const Event& event, const Trial* trial) { files.write(event, trial); });
  const Metrics metrics{{"a,b", 0},           {"a\"b", 1},   {"a\nb", 2},
                        {"a\r\nb", 3},        {"a\xff", 4},  {"a\xfe", 5},
                        {"a\xef\xbf\xbd", 6}, {"reason", 7}, {"config/lr", 8},
                        {"metric/reason", 9}, {"", 10},      {" a", 11}};
  experiment.next(Seconds(0));
  experiment.started(0, Seconds(0));
  experiment.report(0, 1, metrics, {}, Seconds(1));
  CHECK(files.flush().empty());
  CHECK(test::python(folder.path(), R"(
import csv, json
header, row = csv.reader(open('reports.csv', newline='', encoding='utf-8'))
line, = map(json.loads, open('reports.jsonl', encoding='utf-8'))
values = {name: float(value) for name, value in zip(header, row) if name not in header[:7] + ['config/lr', 'config/name', 'config/size']}
def column(name):
    return 'metric/' + name if name in header[:7] or name == '' or name.startswith(('config/', 'metric/')) else name
print(len(header) == len(set(header)), values == {column(name): value for name, value in line['metrics'].items()},
      sorted(values.values()) == [float(i) for i in range(12)])
)") == "True True True\n");
}

TEST_CASE("the journal on disk gives the state of the run", "[tune][reports]") {
  TemporaryFolder folder;
  auto experiment = search(), again = search();
  auto files = ReportFiles::begin(folder.path(), kSpace, RunParams(Json::object(), {}),
                                  journal_header(experiment));
  run(experiment, files);
  const auto before = content_of(folder.path() / "journal.jsonl");
  CHECK(std::ranges::count(before, '\n') == 1);  // the header: the rest is one write
  files.keep();

  const auto journal = content_of(folder.path() / "journal.jsonl");

  CHECK(replay(journal, again) == journal.size());
  CHECK(again.save() == experiment.save());
}

TEST_CASE("Python reads who took over whom, and the schedule that won", "[tune][reports]") {
  TemporaryFolder folder;
  const SearchSpace space{{"lr", grid({0.5, 0.031})}, {"momentum", 0.9}};
  const Configuration changed{{"lr", 0.037}, {"momentum", 0.9}};
  const auto takes_over_once = [&](const Trial& trial, const Population&) -> Decision {
    if (trial.id != 0 || trial.t != 2 || !trial.takeovers.empty()) return GoOn{};
    return Exploit{.donor = 1,
                   .checkpoint = "trials/1/1",
                   .checkpoint_t = 1,
                   .config = changed,
                   .why = "it is worse"};
  };
  Experiment experiment({.objective = {"accuracy", Max}},
                        std::make_unique<GridSearcher>(space, 1, 1),
                        std::make_unique<ScriptedScheduler>(takes_over_once));
  auto files = ReportFiles::begin(folder.path(), space, RunParams(Json::object(), {}), "{}");
  experiment.observe([&](const Event& event, const Trial* trial) { files.write(event, trial); });
  for (TrialId trial = 0; trial < 2; ++trial) {
    experiment.next(Seconds(0));
    experiment.started(trial, Seconds(0));
    experiment.report(trial, 1, {{"accuracy", 0.25}}, "trials/" + std::to_string(trial) + "/1",
                      Seconds(1));
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "pbt.jsonl"));

  experiment.report(0, 2, {{"accuracy", 0.25}}, {}, Seconds(2));
  experiment.relaunch(0, Seconds(2));
  experiment.started(0, Seconds(2));
  experiment.report(0, 2, {{"accuracy", 0.75}}, {}, Seconds(3));
  for (TrialId trial = 0; trial < 2; ++trial) experiment.ended(trial, Seconds(3));
  CHECK(files.flush().empty());
  files.write_summary(experiment, Seconds(4));

  CHECK(test::python(folder.path(), R"(
import json
first, second = [{'lr': lr, 'momentum': 0.9} for lr in (0.5, 0.031)]
changed = {'lr': 0.037, 'momentum': 0.9}
lines = [json.loads(line) for line in open('pbt.jsonl')]
assert lines == [{'to': 0, 'time_s': 2, 'takeover': 1, 't': 2, 'from': 1, 'from_t': 1, 'from_takeovers': 0,
                  'checkpoint': 'trials/1/1', 'own': first, 'old': second, 'new': changed,
                  'reason': 'it is worse'}], lines
summary = json.load(open('summary.json'))
assert summary['best']['trial'] == 0 and summary['best']['best'] == 0.75
assert summary['schedule'] == [{'after_t': 0, 'trial': 1, 'config': second},
                               {'after_t': 1, 'trial': 0, 'config': changed}], summary['schedule']
reports = [json.loads(line) for line in open('reports.jsonl')]
print([(r['trial'], r['t'], r['config']['lr'], r['decision']) for r in reports])
)") == "[(0, 1, 0.5, 'continue'), (1, 1, 0.031, 'continue'), (0, 2, 0.5, 'exploit'), (0, 2, 0.037, "
       "'continue')]\n");
}

TEST_CASE("the last run is the one with the highest number, also where lower ones are gone",
          "[tune][reports]") {
  TemporaryFolder folder;
  const auto& storage = folder.path();
  CHECK(last_run(storage).folder.empty());
  CHECK(last_run(storage / "missing").folder.empty());
  const auto add = [&](const std::string& name) {
    std::filesystem::create_directories(storage / name);
    AppendFile(storage / name / "journal.jsonl").append("{}\n");
  };
  for (const auto* name : {"run-12", "run-3", "run-99x", "run-013", "run--20", "run-"}) add(name);
  CHECK(last_run(storage).folder == storage / "run-12");  // run-3 was written to later
  CHECK(RunFolder::make(storage).path() == storage / "run-13");
  CHECK(last_run(storage).folder == storage / "run-12");  // run-13 has not begun
}

TEST_CASE("a summary that is damaged is named, with the place", "[tune][reports]") {
  TemporaryFolder folder;
  const auto run = folder.path() / "run-1";
  std::filesystem::create_directories(run);
  AppendFile(run / "journal.jsonl").append("{}\n");
  const auto [text, why] = GENERATE(
      table<std::string, std::string>({{"", "it is no JSON from byte 1 of 0 on"},
                                       {"{\"metric\": \"lo", "it is no JSON from byte 15 of 14 on"},
                                       {"[]", "it is no summary of a run"},
                                       {"{}", "it is no summary of a run"}}));
  AppendFile(run / "summary.json").append(text);
  const auto last = last_run(folder.path());
  CHECK(last.folder == run);
  CHECK(last.damaged_summary == (run / "summary.json").string() + " is damaged: " + why);
  CHECK(damage_of_summary(run) == last.damaged_summary);
}

TEST_CASE("a run never writes into the folder of another", "[tune][reports]") {
  TemporaryFolder folder;
  const auto storage = folder.path() / "results" / "digits";
  CHECK(RunFolder::make(storage).path() == storage / "run-1");
  CHECK(RunFolder::make(storage).path() == storage / "run-2");
  std::filesystem::remove_all(storage / "run-1");
  CHECK(RunFolder::make(storage).path() == storage / "run-3");
  AppendFile(folder.path() / "file").append("x");
  CHECK_THROWS_AS(RunFolder::make(folder.path() / "file" / "inside"), std::runtime_error);
}

}  // namespace report_files_test
