// The event files of a run, read by the readers of the `tensorboard` package itself.
#include "output/tensorboard/event_files.hpp"
#include "output/tensorboard/event_records.hpp"

#include <csignal>
#include <filesystem>
#include <iostream>
#include <limits>
#include <stdexcept>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "built.hpp"
#include "python.hpp"
#include "small_disk.hpp"
#include "support/scheduler.hpp"
#include "support/temporary_folder.hpp"

namespace tensorboard_test {

using namespace troupe;
using namespace troupe::tune;
namespace fs = std::filesystem;

namespace {

bool has_readers() {
  if (fs::exists(TROUPE_READERS_PYTHON)) return true;
  std::cout << "skipped: there is no tensorboard package here; ./run setup installs it\n";
  return false;
}

/// What the program prints, which finds each TensorBoard run's scalars by `scalars(run)` and what
/// the HPARAMS tab asks for by `hparams()`.
std::string judged(const fs::path& folder, const std::string& program) {
  return test::python(folder, R"(
import json, logging, math, os
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, event_accumulator, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups
logging.disable(logging.WARNING)  # that it forgets what came before a restart
multiplexer = plugin_event_multiplexer.EventMultiplexer()
multiplexer.AddRunsFromDirectory('tensorboard')
multiplexer.Reload()
def scalars(run):
    reader = event_accumulator.EventAccumulator('tensorboard/' + run)
    reader.Reload()
    return {tag: [(s.step, s.value, s.wall_time) for s in reader.Scalars(tag)] for tag in reader.Tags()['scalars']}
def hparams():
    provider = data_provider.MultiplexerDataProvider(multiplexer, 'tensorboard')
    backend = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    experiment = get_experiment.Handler(context.RequestContext(), backend, '', api_pb2.GetExperimentRequest(include_metrics=True)).run()
    columns = [api_pb2.ColParams(metric=metric.name) for metric in experiment.metric_infos]
    columns += [api_pb2.ColParams(hparam=hparam.name) for hparam in experiment.hparam_infos]
    statuses = [api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING]
    asked = api_pb2.ListSessionGroupsRequest(allowed_statuses=statuses, slice_size=1000, col_params=columns, include_metrics=True)
    groups = list_session_groups.Handler(context.RequestContext(), backend, '', asked).run().session_groups
    return experiment, {g.sessions[0].name: g.sessions[0] for g in groups}, {g.sessions[0].name: g.hparams for g in groups}
)" + program,
                      TROUPE_READERS_PYTHON);
}

struct Config {
  double lr = 0.1;
  int batch = 32;
  bool nesterov = false;
  std::string kind = "plain";
  double fixed = 1;
};

int reports_to_interrupt = 0;  // 0: none

void train(tune::Context& ctx, const Config& config) {
  if (config.kind == "fails") throw std::runtime_error("it fails");
  for (int t = 1; t <= 9; ++t) {
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    const double loss = config.kind == "nan" && t == 2 ? nan : config.lr + 1.0 / t;
    Metrics metrics{{"loss", loss}, {"nan", nan}, {"huge", t % 2 == 0 ? 1e300 : -1e300}};
    metrics.emplace_back("not \xff UTF-8", t);
    metrics.emplace_back("not \xfe UTF-8", -t);
    if (reports_to_interrupt > 0 && --reports_to_interrupt == 0) ::raise(SIGINT);
    if (ctx.report(metrics) == Verdict::Stop) return;
  }
}

auto sweep(const fs::path& storage, bool resume = false,
           std::size_t snapshot_after = std::size_t{16} << 20) {
  return tune::run<train>({.space = {{"lr", tune::loguniform(1e-3, 1.0)},
                                     {"batch", tune::integer(8, 64)},
                                     {"nesterov", tune::choice({true, false})},
                                     {"kind", tune::choice({"plain", "fails", "nan"})},
                                     {"fixed", 0.5}},
                           .trials = 16,
                           .metric = "loss",
                           .scheduler = tune::asha({.max_t = 9, .eta = 3}),
                           .storage = storage,
                           .resume = resume,
                           .snapshot_after = snapshot_after,
                           .tensorboard = true,
                           .seed = 4,
                           .show = tune::Show::None,
                           .in_process = true});
}

/// Prints what of the event files is not what reports.jsonl and summary.json have, and a word on
/// what they have.
constexpr auto* kSameAsReports = R"(
reports = [json.loads(line) for line in open('reports.jsonl')]
summary = json.load(open('summary.json'))
expected = {}
for r in reports:
    for name, value in r['metrics'].items():
        expected.setdefault('trial-%d' % r['trial'], {}).setdefault(name, []).append((r['t'], float(value)))
def same(a, b):
    if math.isnan(b): return math.isnan(a)
    if abs(b) > 1e39: return a == math.copysign(math.inf, b)
    return abs(a - b) <= 1e-6 * abs(b)
times = []
for run, metrics in expected.items():
    found = scalars(run)
    assert found.keys() == metrics.keys(), (run, found.keys(), metrics.keys())
    for tag in metrics:
        assert [s[0] for s in found[tag]] == [t for t, _ in metrics[tag]], (run, tag, found[tag])
        assert all(same(s[1], m[1]) for s, m in zip(found[tag], metrics[tag])), (run, tag)
        times += [s[2] for s in found[tag]]
now = os.stat('summary.json').st_mtime
assert all(now - 60 < time < now + 1 for time in times), (now, times)
experiment, sessions, configs = hparams()
infos = {i.name: i for i in experiment.hparam_infos}
assert sorted(infos) == ['batch', 'fixed', 'kind', 'lr', 'nesterov'], infos
assert infos['lr'].domain_interval.min_value == 1e-3 and infos['lr'].domain_interval.max_value == 1
assert infos['batch'].type == infos['lr'].type == infos['fixed'].type == api_pb2.DATA_TYPE_FLOAT64
assert infos['nesterov'].type == api_pb2.DATA_TYPE_BOOL and list(infos['nesterov'].domain_discrete) == [True, False]
assert infos['kind'].type == api_pb2.DATA_TYPE_STRING
assert list(infos['kind'].domain_discrete) == ['plain', 'fails', 'nan']
metrics = [m.name.tag for m in experiment.metric_infos]
assert metrics == ['loss', 'nan', 'huge', 'not \ufffdFF UTF-8', 'not \ufffdFE UTF-8'], metrics
failed = 0
for trial in summary['trials']:
    run = 'trial-%d' % trial['trial']
    session = sessions[run]
    for name, value in trial['config'].items():
        found = configs[run][name]
        assert (found.string_value if name == 'kind' else found.bool_value if name == 'nesterov'
                else found.number_value) == value, (run, name, found)
    is_failure = trial['status'] == 'errored'
    failed += is_failure
    assert session.status == (api_pb2.STATUS_FAILURE if is_failure else api_pb2.STATUS_SUCCESS), session
    assert session.end_time_secs >= session.start_time_secs > now - 60
    if run in expected:
        last = {m.name.tag: m.value for m in session.metric_values}
        assert same(last['loss'], expected[run]['loss'][-1][1]), (run, last)
assert len(sessions) == 16
print(len(times) > 100, failed > 0, sorted(multiplexer.Runs()) == sorted(['.'] + list(sessions)))
)";

}  // namespace

TEST_CASE("a checksum of a record is the masked CRC-32C", "[tune][tensorboard]") {
  // RFC 3720: of "123456789" it is 0xe3069283; masked, 0x2507 0xc60d rotated plus 0xa282ead8.
  const auto record = tf_record("123456789");
  const std::uint32_t crc = 0xe3069283;
  const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8;
  REQUIRE(record.size() == 8 + 4 + 9 + 4);
  CHECK(record.substr(0, 8) == std::string("\x09\0\0\0\0\0\0\0", 8));
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(static_cast<unsigned char>(record[21 + i]) == (masked >> (8 * i) & 0xff));
}

TEST_CASE("TensorBoard reads each trial's scalars and hyperparameters",
          "[tune][tensorboard][readers]") {
  if (!has_readers()) return;
  const TemporaryFolder folder;
  const auto results = sweep(folder.path());
  CHECK(judged(results.folder(), kSameAsReports) == "True True True\n");
}

TEST_CASE("TensorBoard reads each step once of a run that was interrupted and taken up",
          "[tune][tensorboard][readers]") {
  if (!has_readers()) return;
  const std::size_t snapshot_after = GENERATE(1, 2500, 1'000'000);
  CAPTURE(snapshot_after);
  const TemporaryFolder folder;
  reports_to_interrupt = 15;
  const auto interrupted = sweep(folder.path(), false, snapshot_after);
  REQUIRE(interrupted.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  const auto first = interrupted.folder() / "tensorboard" / "trial-0";
  const auto copy = folder.path() / "before";
  fs::copy(first, copy);
  CHECK(fs::exists(interrupted.folder() / "snapshot.jsonl") == (snapshot_after < 1'000'000));
  const auto results = sweep(folder.path(), true, snapshot_after);
  REQUIRE(results.ended_early() == "");
  REQUIRE(results.folder() == interrupted.folder());
  CHECK(judged(results.folder(), kSameAsReports) == "True True True\n");
  // A TensorBoard that read along has read the files of the first driver before those of the second.
  fs::copy(copy, first);
  CHECK(judged(results.folder(), kSameAsReports) == "True True True\n");
}

TEST_CASE("TensorBoard reads what a trial reported after it took over another",
          "[tune][tensorboard][readers]") {
  if (!has_readers()) return;
  const TemporaryFolder folder;
  const SearchSpace space{{"lr", grid({0.5, 0.25})}};
  const auto takes_over_once = [&](const Trial& trial, const Population&) -> Decision {
    if (trial.id != 0 || trial.t != 3 || !trial.takeovers.empty()) return GoOn{};
    return Exploit{
        .donor = 1, .checkpoint = "1/1", .checkpoint_t = 1, .config = {{"lr", 0.3}}, .why = ""};
  };
  Experiment experiment({.objective = {"accuracy", Max}},
                        std::make_unique<GridSearcher>(space, 1, 1),
                        std::make_unique<ScriptedScheduler>(takes_over_once));
  EventFiles files({.folder = folder.path() / "tensorboard", .title = "run"}, space,
                   {"accuracy", Max});
  experiment.observe([&](const Event& event, const Trial* trial) {
    files.see(event, *trial, WallTime(event.now));
  });
  for (TrialId trial = 0; trial < 2; ++trial) {
    experiment.next(Seconds(0));
    experiment.started(trial, Seconds(0));
    experiment.report(trial, 1, {{"accuracy", 0.25}}, std::to_string(trial) + "/1", Seconds(1));
  }
  for (const int t : {2, 3}) experiment.report(0, t, {{"accuracy", 0.5}}, {}, Seconds(t));
  experiment.relaunch(0, Seconds(4));
  experiment.started(0, Seconds(4));
  experiment.report(0, 2, {{"accuracy", 0.75}}, {}, Seconds(5));
  // A retry goes on from the donor's checkpoint: what was reported since stays.
  experiment.failed(0, "lost", Fault::System, Seconds(5));
  experiment.next(Seconds(5));
  experiment.started(0, Seconds(5));
  experiment.report(0, 3, {{"accuracy", 0.5}}, {}, Seconds(6));
  for (TrialId trial = 0; trial < 2; ++trial) experiment.ended(trial, Seconds(6));
  CHECK(files.conclude(experiment, WallTime(Seconds(6)), {}).empty());
  CHECK(judged(folder.path(), "print(scalars('trial-0'), scalars('trial-1'))") ==
        "{'accuracy': [(1, 0.25, 1.0), (2, 0.75, 5.0), (3, 0.5, 6.0)]} {'accuracy': [(1, 0.25, "
        "1.0)]}\n");
}

TEST_CASE("TensorBoard reads each step once of a trial that was tried again as the run ended",
          "[tune][tensorboard][readers]") {
  if (!has_readers()) return;
  const TemporaryFolder folder;
  const SearchSpace space{{"lr", grid({0.5})}};
  const Objective accuracy{"accuracy", Max};
  Experiment experiment({.objective = accuracy, .max_failures = 1},
                        std::make_unique<GridSearcher>(space, 1, 1), fifo()(accuracy, 1));
  EventFiles files({.folder = folder.path() / "tensorboard", .title = "run"}, space, accuracy);
  experiment.observe([&](const Event& event, const Trial* trial) {
    if (trial) files.see(event, *trial, WallTime(event.now));
  });
  const auto begin = [&](double now) {
    experiment.next(Seconds(now));
    experiment.started(0, Seconds(now));
  };
  const auto report = [&](int t, double now) {
    return experiment.report(0, t, {{"accuracy", 0.25 * t}}, {}, Seconds(now));
  };
  begin(0);
  for (const int t : {1, 2, 3}) report(t, t);
  experiment.failed(0, "lost", Fault::Trial, Seconds(4));
  begin(5);
  report(1, 6);
  experiment.close("enough", Seconds(7));
  CHECK(std::holds_alternative<Stop>(report(2, 8)));
  experiment.ended(0, Seconds(9));
  CHECK(files.conclude(experiment, WallTime(Seconds(9)), {}).empty());
  CHECK(judged(folder.path(), "print(scalars('trial-0'))") ==
        "{'accuracy': [(1, 0.25, 1.0), (2, 0.5, 2.0), (3, 0.75, 3.0)]}\n");
}

TEST_CASE("event files that a full disk did not take are whole once there is room",
          "[tune][tensorboard]") {
  const TemporaryFolder mount_point, folder;
  const test::SmallDisk disk(mount_point.path(), 256);
  if (!disk.is_there()) return;
  EventFiles on_disk({.folder = disk.path() / "tensorboard"}, {}, {"loss", Min});
  EventFiles undisturbed({.folder = folder.path() / "tensorboard"}, {}, {"loss", Min});
  Trial first{.id = 0, .in_flight = true}, second{.id = 1, .in_flight = true};
  const auto both_see = [&](Trial& trial, Event::Kind kind, std::int64_t t) {
    const Event event{.kind = kind, .trial = trial.id, .t = t, .metrics = {{"loss", t}}};
    on_disk.see(event, trial, WallTime(Seconds(t)));
    undisturbed.see(event, trial, WallTime(Seconds(t)));
  };
  both_see(first, Event::Kind::Launched, 0);
  test::fill(disk.path());
  both_see(second, Event::Kind::Launched, 0);
  for (int t = 1; t <= 2000; ++t) {
    both_see(first, Event::Kind::Reported, t);
    both_see(second, Event::Kind::Reported, t);
  }
  first.status = Status::Terminated;
  first.in_flight = false;
  both_see(first, Event::Kind::Ended, 2000);
  const auto notices = on_disk.tick();
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices.front(), Catch::StartsWith("cannot write ") &&
                                  Catch::Contains("No space left on device. The search goes on"));
  CHECK(on_disk.tick().empty());
  test::make_room(disk.path());
  CHECK(on_disk.tick() ==
        Tracker::Notices{"the event files that the disk had no room for are written now"});
  for (const auto* name : {"", "trial-0", "trial-1"}) {
    const auto file = fs::path("tensorboard") / name / "events.out.tfevents.0000000000.1";
    CHECK(content_of(disk.path() / file) == content_of(folder.path() / file));
    CHECK(fs::file_size(folder.path() / file) > 100);
  }
}

TEST_CASE("event files are refused where there is no folder for them", "[tune][tensorboard]") {
  CHECK_THROWS_WITH(
      tune::run<train>({.space = {{"lr", tune::uniform(0, 1)}},
                        .trials = 1,
                        .metric = "loss",
                        .tensorboard = true,
                        .show = tune::Show::None,
                        .in_process = true}),
      "tune: .tensorboard writes into the run's folder, and without .storage there is none; name a "
      "folder");
}

}  // namespace tensorboard_test
