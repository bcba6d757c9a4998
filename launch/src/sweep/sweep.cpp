#include "sweep/sweep.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <troupe/tune.hpp>
#include <troupe/tune/detail/checks.hpp>
#include <troupe/tune/detail/simulate.hpp>
#include <troupe/tune/detail/sweep_keys.hpp>

#include "config/name.hpp"
#include "host/program.hpp"
#include "os/files/replace_file.hpp"
#include "plan/environment.hpp"
#include "sweep/trial_program.hpp"
#include "workdir/packed_folder.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

// Of a preview: a trial that nothing stops before ends there; a few run at a time.
constexpr std::int64_t kMadeUpReports = 1000;
constexpr std::size_t kMadeUpGangs = 4;
constexpr std::uint64_t kMadeUpTrials = 1000;

std::string json_of(const tune::Scalar& scalar) {
  return std::visit([](const auto& value) { return nlohmann::json(value).dump(); }, scalar.value());
}

std::vector<Field> fields_of(const tune::Configuration& config) {
  std::vector<Field> fields;
  for (const auto& [name, value] : config)
    fields.push_back({name, to_string(value), json_of(value)});
  return fields;
}

/// The conditional fields that a trial with this configuration has not.
std::vector<std::string> left_out_of(const tune::Configuration& config,
                                     const std::vector<std::string>& conditional) {
  std::vector<std::string> left_out;
  for (const auto& name : conditional) {
    const auto is_this = [&](const auto& field) { return field.first == name; };
    if (std::ranges::none_of(config, is_this)) left_out.push_back(name);
  }
  return left_out;
}

/// As somebody would type it: the variables that depend on the configuration, then the command.
std::string command_line(const SweepFile& sweep, const tune::Configuration& config) {
  const auto fields = with_paths(fields_of(config), "CHECKPOINT_DIR");
  const auto left_out = left_out_of(config, sweep.plan.completion.conditional);
  std::vector<std::string> words;
  for (const auto& [name, value] : sweep.variables) {
    if (names_any(value, left_out)) continue;
    const auto filled = filled_in(value, fields);
    if (filled != value) words.push_back(fmt::format("{}={}", name, filled));
  }
  for (auto& argument : filled_in(sweep.command, fields, left_out))
    words.push_back(std::move(argument));
  return fmt::format("{}", fmt::join(words, " "));
}

/// That the sweep asks for, or that its grid has points.
std::uint64_t trials_of(const tune::detail::Plan& plan) {
  if (plan.trials > 0) return plan.trials;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::uint64_t points = plan.samples;
  for (const auto& [name, domain] : plan.space) {
    if (domain.kind() != tune::Domain::Kind::Grid) continue;
    const auto values = std::max<std::uint64_t>(1, domain.values().size());
    points = points > kMost / values ? kMost : points * values;
  }
  return points;
}

/// What each trial reports where nobody looks at it.
void report_zeros(tune::detail::World& world, const tune::detail::Plan& plan) {
  if (plan.objectives.empty()) {
    world.curve = [](const tune::Configuration&, std::int64_t) { return 0.0; };
    return;
  }
  std::set<std::string> metrics;
  for (const auto& objective : plan.objectives) metrics.insert(objective.metric);
  for (const auto& constraint : plan.constraints) metrics.insert(constraint.metric);
  world.curves = [count = metrics.size()](const tune::Configuration&, std::int64_t) {
    return std::vector<double>(count, 0.0);
  };
}

/// Of the first trials, as the searcher suggests them while none has reported.
std::vector<tune::Configuration> first_configurations(const SweepFile& sweep, std::size_t count) {
  auto plan = sweep.plan;
  const auto wanted = count * sweep.repeats;
  plan.trials = plan.trials == 0 ? wanted : std::min<std::size_t>(plan.trials, wanted);
  plan.first.resize(std::min<std::size_t>(plan.first.size(), plan.trials));
  plan.samples = 1;
  plan.scheduler = tune::fifo();
  plan.stop = {};
  plan.time_budget = {};
  tune::detail::World world{.reports = 1, .gangs = 1};
  report_zeros(world, plan);
  std::vector<tune::Configuration> configurations;
  for (auto& trial : tune::detail::simulate(plan, world).outcome.trials) {
    const bool is_repeated =
        sweep.repeats > 1 && !configurations.empty() && configurations.back() == trial.config;
    if (is_repeated) continue;
    if (configurations.size() == count) break;
    configurations.push_back(std::move(trial.config));
  }
  return configurations;
}

/// Takes out what ends trials or the run by values or by real time. -> the keys that the sweep has of
/// it.
std::vector<std::string> without_real_criteria(tune::detail::Plan& plan) {
  std::vector<std::string> keys;
  const auto take_out = [&keys](const char* key, auto& criterion) {
    const std::remove_reference_t<decltype(criterion)> none{};
    if (criterion == none) return;
    criterion = none;
    keys.emplace_back(key);
  };
  take_out("stop.plateau", plan.stop.plateau.reports);
  take_out("stop.trial_time", plan.stop.trial_time);
  take_out("stop.reaches", plan.stop.reaches);
  take_out("stop.no_better_trials", plan.stop.no_better_trials);
  take_out("stop.cost", plan.stop.cost);
  take_out("time_budget", plan.time_budget);
  return keys;
}

using tune::detail::kProgramFile;

/// What the search's own files do not have of a sweep, in the folder of its run.
nlohmann::json program_of_sweep(const SweepFile& sweep) {
  auto variables = nlohmann::json::object();
  for (const auto& [name, value] : sweep.variables) variables[name] = value;
  return {{"file", fs::path(sweep.file).filename().string()},
          {"command", sweep.command},
          {"env", variables}};
}

/// For who goes on with the run or looks for it.
void write_program(const SweepFile& sweep, const fs::path& folder) {
  const auto text =
      program_of_sweep(sweep).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  try {
    os::replace_file(folder / kProgramFile, text + "\n");
  } catch (const std::system_error&) {
    // As on a full disk: the run keeps what it had, or belongs to no sweep file.
  }
}

/// That trials of one run are of two programs is allowed, and worth a line.
void note_changes(const SweepFile& sweep, const fs::path& folder) {
  std::ifstream in(folder / kProgramFile, std::ios::binary);
  const auto before = nlohmann::json::parse(in, nullptr, false);
  if (!before.is_object()) return;  // of an earlier version, or cut short
  const auto now = program_of_sweep(sweep);
  const auto text = [](const nlohmann::json& value) {
    return value.is_null() ? std::string("not there")
                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const auto note = [&](const std::string& what, const nlohmann::json& was,
                        const nlohmann::json& is) {
    if (was == is) return;
    fmt::print(stderr, "note: {} was {} when {} began, and is {} for what is run from now on\n",
               what, text(was), folder.string(), text(is));
  };
  const auto of = [](const nlohmann::json& program, const char* key) {
    return program.contains(key) ? program.at(key) : nlohmann::json();
  };
  if (before.contains("file")) note("the sweep file", before.at("file"), now.at("file"));
  note("command", of(before, "command"), now.at("command"));
  const auto was = of(before, "env"), is = now.at("env");
  if (!was.is_object()) return;
  std::set<std::string> names;
  for (const auto* variables : {&was, &is})
    for (const auto& [name, value] : variables->items()) names.insert(name);
  for (const auto& name : names)
    note("env." + name, was.value(name, nlohmann::json()), is.value(name, nlohmann::json()));
}

/// What each trial has in common; the configuration makes the rest.
class ProgramOf {
 public:
  explicit ProgramOf(const SweepFile& sweep)
      : conditional_{sweep.plan.completion.conditional},
        common_{.command = sweep.command,
                .fields = {},
                .left_out = {},
                .environment = environment_to_hand_on(),
                .variables = sweep.variables,
                .directory = sweep.directory,
                .workdir = {},
                .archive = {},
                .run_id = {},
                .pattern = sweep.pattern,
                .event_folder = sweep.event_folder,
                .metric = sweep.plan.objective.metric,
                .cpus = sweep.each.cpus,
                .per_host = std::max(1, sweep.per_node),
                .grace_s = sweep.grace_s,
                .prints = sweep.prints} {
    if (sweep.workdir.empty()) return;
    auto packed = pack_folder(sweep.workdir, {sweep.plan.storage});
    common_.run_id = fmt::format("tune-{}-{}", packed.digest.substr(0, 12), ::getpid());
    common_.workdir = std::move(packed.digest);
    common_.archive.push_back(put(std::move(packed.archive)));
  }

  TrialProgram operator()(const tune::Configuration& config) const {
    auto program = common_;
    program.fields = fields_of(config);
    program.left_out = left_out_of(config, conditional_);
    return program;
  }

 private:
  std::vector<std::string> conditional_;
  TrialProgram common_;
};

tune::detail::Outcome search(const SweepFile& sweep, const tune::detail::Plan& plan) {
  const auto per_host = std::max(1, sweep.per_node);
  const GangShape shape{.size = plan.workers / per_host,
                        .strategy = sweep.per_node > 0 ? Strategy::StrictSpread : sweep.strategy};
  const auto needs = request_of_host(sweep.each, per_host);
  const ProgramOf program_of(sweep);
  bool is_written = false;
  return tune::detail::search(plan, [&](const tune::detail::Work& work) {
    if (!std::exchange(is_written, true) && !work.marker.empty())
      write_program(sweep, fs::path(work.marker).parent_path());
    using Gang = tune::detail::GangWorkers<run_trial_program, ProgramOf>;
    return std::unique_ptr<tune::detail::Workers>(
        std::make_unique<Gang>(shape, needs, program_of, work));
  });
}

}  // namespace

void check_runs(const SweepFile& sweep) {
  auto plan = sweep.plan;
  plan.time_budget = std::chrono::milliseconds(1);  // over with the first launch
  tune::detail::World world{.reports = 1, .gangs = 1, .launch = tune::Seconds(1)};
  report_zeros(world, plan);
  tune::detail::simulate(plan, world);
  try {
    tune::detail::check_storage(plan.storage);
  } catch (const std::runtime_error& refused) {
    throw std::runtime_error(fmt::format(
        "{}: {}", sweep.storage_at, tune::detail::with_sweep_keys(refused.what(), {plan.storage})));
  }
}

tune::detail::Outcome run_sweep(const SweepFile& sweep) {
  check_runs(sweep);
  return search(sweep, sweep.plan);
}

tune::detail::Outcome resume_sweep(const SweepFile& sweep, const std::string& folder) {
  auto plan = sweep.plan;
  plan.resume = true;
  plan.resume_folder = folder;
  const auto run =
      folder.empty() ? tune::detail::last_run_in(plan.storage, plan.sweep_file) : fs::path(folder);
  if (!run.empty()) note_changes(sweep, run);
  return search(sweep, plan);
}

SweepPreview preview(const SweepFile& sweep) {
  if (!sweep.has_rungs) return {};
  const auto sign = sweep.plan.objective.mode == tune::Min ? 1.0 : -1.0;
  tune::detail::World world{.reports = kMadeUpReports, .gangs = kMadeUpGangs};
  world.curve = [sign](const tune::Configuration& config, std::int64_t t) {
    std::string text;
    for (const auto& field : fields_of(config)) text += field.json + ",";
    const auto end = static_cast<double>(std::hash<std::string>()(text) % 1000);
    return sign * (end + 1000.0 / static_cast<double>(t));
  };
  auto plan = sweep.plan;
  const auto asked = trials_of(plan);
  plan.trials = static_cast<std::size_t>(std::min(asked, kMadeUpTrials));
  plan.samples = 1;
  plan.searcher = {};  // what it learns from made-up curves is nothing, and may take minutes
  plan.objectives = {};
  plan.constraints = {};
  plan.first.resize(std::min<std::size_t>(plan.first.size(), plan.trials));
  auto ignored = without_real_criteria(plan);
  if (plan.max_concurrent > 0) world.gangs = plan.max_concurrent;
  auto simulated = tune::detail::simulate(plan, world);
  auto& numbers = simulated.numbers;
  return {.reached = std::move(numbers.reached),
          .trials = simulated.outcome.trials.size(),
          .asked = asked,
          .reports = numbers.steps,
          .reports_unstopped = numbers.steps_unstopped,
          .places = world.gangs,
          .busy = numbers.busy,
          .ignored = std::move(ignored)};
}

std::vector<std::string> first_commands(const SweepFile& sweep, std::size_t count) {
  std::vector<std::string> commands;
  for (const auto& config : first_configurations(sweep, count)) {
    auto command = command_line(sweep, config);
    // Every point of the grid, once.
    if (sweep.plan.trials == 0 && !commands.empty() && command == commands.front()) break;
    commands.push_back(std::move(command));
  }
  return commands;
}

NotHere not_here(const SweepFile& sweep) {
  NotHere missing;
  std::error_code ignored;
  if (!sweep.workdir.empty() && !fs::is_directory(sweep.workdir, ignored)) {
    missing.workdir =
        fmt::format("{}: there is no folder '{}' on this machine, which would send it",
                    sweep.workdir_at, config::printable(sweep.workdir));
    return missing;
  }
  for (const auto& config : first_configurations(sweep, 1)) {
    const auto fields = with_paths(fields_of(config), "CHECKPOINT_DIR");
    const auto left_out = left_out_of(config, sweep.plan.completion.conditional);
    const auto variables = filled_in(sweep.variables, fields, left_out);
    const auto found =
        find_program(filled_in(sweep.command.front(), fields), merged(own_environment(), variables),
                     sweep.workdir.empty() ? sweep.directory : sweep.workdir);
    if (const auto* why = std::get_if<NotStarted>(&found))
      missing.program = fmt::format("{}: {}", sweep.command_at, why->why);
  }
  return missing;
}

}  // namespace troupe::launch
