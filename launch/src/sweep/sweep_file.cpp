#include "sweep/sweep_file.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include <troupe/tune.hpp>
#include <troupe/tune/detail/checks.hpp>
#include <troupe/tune/detail/sweep_keys.hpp>

#include "config/name.hpp"
#include "sweep/fields.hpp"
#include "sweep/report_line.hpp"
#include "sweep/search_tables.hpp"
#include "sweep/toml_table.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

using tune::Scalar;

constexpr std::int64_t kMostRanks = 1 << 16;  // of a gang
constexpr double kMostSeconds = 1e9;          // 31 years
// Beyond the grace of a program, for its host: seconds until a gang is ended that was told to stop,
// or to end with the run.
constexpr int kMoreToStop = 5;
constexpr int kMoreToEnd = 2;

constexpr const char* kDomains =
    "is a value, or a table with one of uniform, loguniform, integer, log_integer, normal, choice, "
    "ordinal and grid: { uniform = [0.0, 1.0] }";

double real(TomlTable& field, const std::string& key, const Scalar& value) {
  if (const auto* number = std::get_if<double>(&value.value())) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&value.value()))
    return static_cast<double>(*whole);
  field.refuse(key, "has a bound that is no number");
}

std::int64_t whole(TomlTable& field, const std::string& key, const Scalar& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.value())) return *number;
  field.refuse(key, "has a bound that is no integer");
}

/// { uniform = [0, 1], step = 0.1 }
tune::Domain range_of(TomlTable& field, const std::string& kind,
                      const std::vector<Scalar>& bounds) {
  if (bounds.size() != 2) field.refuse(kind, "has two values: [low, high]");
  const auto step = field.scalar("step");
  if (kind == "integer" || kind == "log_integer") {
    const auto low = whole(field, kind, bounds[0]), high = whole(field, kind, bounds[1]);
    if (kind == "log_integer" && step) field.refuse("step", "is of the other kinds of ranges");
    if (kind == "log_integer") return tune::log_integer(low, high);
    return step ? tune::integer(low, high, whole(field, "step", *step)) : tune::integer(low, high);
  }
  const auto low = real(field, kind, bounds[0]), high = real(field, kind, bounds[1]);
  if (!step) {
    if (kind == "normal") return tune::normal(low, high);
    return kind == "uniform" ? tune::uniform(low, high) : tune::loguniform(low, high);
  }
  const auto each = real(field, "step", *step);
  if (kind == "normal") return tune::normal(low, high, each);
  return kind == "uniform" ? tune::uniform(low, high, each) : tune::loguniform(low, high, each);
}

bool has_zero(const std::string& text) { return text.find('\0') != std::string::npos; }

constexpr const char* kZero =
    "has a zero byte, \\u0000, which no program can be given: leave it out";

/// Texts that a program is to be given.
void check_texts(const TomlTable& space, const std::string& name, const tune::Domain& domain) {
  for (const auto& value : domain.values()) {
    const auto* text = std::get_if<std::string>(&value.value());
    if (text != nullptr && has_zero(*text)) space.refuse(name, kZero);
  }
}

/// Names that stand for something else in the texts of a sweep.
void check_name(const TomlTable& space, const std::string& name) {
  if (name.empty()) space.refuse(name, "is no name of a field: give it one");
  if (has_zero(name)) space.refuse(name, kZero);
  for (const auto& path : with_paths({}, "")) {
    if (name == path.name)
      space.refuse(name, fmt::format("is no name of a field, as {{{}}} is the path that each "
                                     "trial has for it: give the field another",
                                     name));
  }
}

tune::Domain domain_of(TomlTable& space, const std::string& name) {
  if (const auto value = space.scalar(name)) return tune::Domain(*value);
  if (space.is_list(name)) space.refuse(name, kDomains);
  auto field = space.table(name);
  if (!field) space.refuse(name, kDomains);
  std::optional<tune::Domain> domain;
  const auto alone = [&](const char* kind) {
    if (domain) field->refuse(kind, "is one kind too many: a field has one");
  };
  try {
    for (const auto* kind : {"uniform", "loguniform", "integer", "log_integer", "normal"}) {
      if (const auto bounds = field->scalars(kind)) {
        alone(kind);
        domain = range_of(*field, kind, *bounds);
      }
    }
    for (const auto* kind : {"choice", "ordinal", "grid"}) {
      if (const auto values = field->scalars(kind)) {
        alone(kind);
        domain = kind == std::string("choice")    ? tune::choice(*values)
                 : kind == std::string("ordinal") ? tune::ordinal(*values)
                                                  : tune::grid(*values);
      }
    }
  } catch (const std::invalid_argument& refused) {
    space.refuse(name, "cannot be: " + tune::detail::with_sweep_keys(refused.what()));
  }
  field->finish();
  if (!domain) space.refuse(name, kDomains);
  return *domain;
}

tune::SearchSpace space_of(TomlTable& file) {
  auto table = file.table("space");
  if (!table) file.refuse_missing("space", "is missing: it says what is searched, [space]");
  tune::SearchSpace space;
  for (const auto& name : table->keys()) {
    check_name(*table, name);
    space.push_back({name, domain_of(*table, name)});
    check_texts(*table, name, space.back().domain);
  }
  if (space.empty()) file.refuse("space", "has no field: lr = { loguniform = [1e-4, 1.0] }");
  return space;
}

/// [first]: the fields that are given, in the order of the space; the others as their domain's first
/// value would be another guess, so all have to be there.
std::vector<tune::Configuration> first_of(TomlTable& file, const tune::SearchSpace& space) {
  std::vector<tune::Configuration> first;
  for (auto& table : file.tables("first")) {
    tune::Configuration config;
    for (const auto& [name, domain] : space) {
      auto value = table.scalar(name);
      if (domain.kind() == tune::Domain::Kind::Constant) value = domain.values().front();
      if (!value) file.refuse("first", fmt::format("has an entry without {}", name));
      const auto range = domain.range();
      if (range && std::holds_alternative<std::int64_t>(value->value()) &&
          domain.kind() != tune::Domain::Kind::Integer &&
          domain.kind() != tune::Domain::Kind::LogInteger)
        value = static_cast<double>(std::get<std::int64_t>(value->value()));
      if (!domain.contains(*value))
        file.refuse("first",
                    fmt::format("has {} = {}, which its domain has not", name, to_string(*value)));
      config.emplace_back(name, *value);
    }
    table.finish();
    first.push_back(std::move(config));
  }
  return first;
}

void read_ranks_of_node(TomlTable& gang, SweepFile& sweep) {
  set(sweep.per_node, gang.integer("per_node", 1, kMostRanks));
  if (sweep.per_node == 0) return;
  if (!gang.has("ranks")) gang.refuse("per_node", "is of a trial whose ranks are given: ranks = 8");
  if (gang.has("strategy"))
    gang.refuse("strategy", "says where ranks go, and per_node says it too: a trial has one");
  if (sweep.plan.workers % sweep.per_node != 0) {
    gang.refuse("per_node", fmt::format("is {}, and {} ranks cannot be dealt out so: give a "
                                        "multiple of {} in ranks",
                                        sweep.per_node, sweep.plan.workers, sweep.per_node));
  }
}

void read_gang(TomlTable& file, SweepFile& sweep) {
  auto table = file.table("gang");
  if (!table) return;
  set(sweep.plan.workers, table->integer("ranks", 1, kMostRanks));
  set(sweep.each.cpus, table->number("cpus", 0));
  set(sweep.each.gpus, table->number("gpus", 0));
  set(sweep.each.memory_gb, table->number("memory_gb", 0));
  if (auto labels = table->table("label")) {
    for (const auto& key : labels->keys()) sweep.each.labels.emplace_back(key, *labels->text(key));
  }
  if (const auto name = table->text("strategy")) {
    const auto strategy = strategy_named(*name);
    if (!strategy) {
      table->refuse("strategy", "is one of pack, spread, strict-pack and strict-spread");
    }
    sweep.strategy = *strategy;
  }
  read_ranks_of_node(*table, sweep);
  table->finish();
  try {
    request_of_host(sweep.each, std::max(1, sweep.per_node));
  } catch (const std::invalid_argument& refused) {
    table->refuse_named(refused.what(), "ranks");
  }
}

void read_reports(TomlTable& file, SweepFile& sweep) {
  auto table = file.table("reports");
  if (!table) return;
  set(sweep.pattern, table->text("pattern"));
  try {
    ReportReader{sweep.pattern};
  } catch (const Error& error) {
    table->refuse("pattern", fmt::format("cannot be: {}", error.what()));
  }
  set(sweep.event_folder, table->text("tensorboard"));
  const auto& metric = sweep.plan.objective.metric;
  if (!sweep.pattern.empty() && sweep.event_folder.empty() &&
      !ReportReader{sweep.pattern}.finds(metric)) {
    table->refuse("pattern", fmt::format("has no group {0}, so that nothing it finds is a report: "
                                         "write (?<{0}>[0-9.e+-]+) where the value stands",
                                         metric));
  }
  table->finish();
}

std::chrono::milliseconds seconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

void read_plateau(TomlTable& stop, tune::Plateau& plateau) {
  auto table = stop.table("plateau");
  if (!table) return;
  set(plateau.reports, table->integer("reports", 1));
  set(plateau.delta, table->number("delta", 0));
  if (!table->has("reports"))
    table->refuse_missing("reports",
                          "is missing: after how many reports without a better one a trial ends, "
                          "reports = 5");
  table->finish();
}

void read_cost(TomlTable& stop, tune::StopWhen& when) {
  set(when.cost, stop.number("cost", 0));
  when.cost_metric = stop.text("cost_metric").value_or("");
  if (stop.has("cost") && when.cost_metric.empty()) {
    stop.refuse("cost",
                "needs the metric that each report gives its cost as: cost_metric = \"seconds\"");
  }
  if (stop.has("cost_metric") && !stop.has("cost"))
    stop.refuse("cost_metric", "needs the cost at which the sweep ends: cost = 3600");
}

void read_stop(TomlTable& file, tune::detail::Plan& plan) {
  auto table = file.table("stop");
  if (!table) return;
  set(plan.stop.reports, table->integer("reports", 1));
  read_plateau(*table, plan.stop.plateau);
  if (const auto limit = table->number("trial_time", 0, kMostSeconds))
    plan.stop.trial_time = seconds(*limit);
  if (const auto reaches = table->number("reaches")) plan.stop.reaches = *reaches;
  set(plan.stop.all_reports, table->integer("all_reports", 1));
  set(plan.stop.no_better_trials, table->integer("no_better_trials", 1));
  read_cost(*table, plan.stop);
  table->finish();
}

void read_run(TomlTable& file, SweepFile& sweep) {
  auto& plan = sweep.plan;
  if (const auto mode = file.text("mode")) {
    if (*mode != "min" && *mode != "max") file.refuse("mode", "is \"min\" or \"max\"");
    plan.objective.mode = *mode == "min" ? tune::Min : tune::Max;
  }
  plan.objective.metric = file.text("metric").value_or("");
  if (plan.objective.metric.empty())
    file.refuse_missing("metric", "is missing: the name of what trials report, metric = \"loss\"");
  set(plan.trials, file.integer("trials", 1));
  set(plan.samples, file.integer("samples", 1));
  set(plan.seed, file.integer("seed", 0, std::numeric_limits<std::int64_t>::max()));
  set(plan.max_concurrent, file.integer("max_concurrent", 1));
  set(plan.max_failures, file.integer("max_failures", 0));
  set(plan.keep_checkpoints, file.integer("keep_checkpoints", 1));
  set(plan.tensorboard, file.truth("tensorboard"));
  if (const auto url = file.text("mlflow")) plan.mlflow.url = *url;
  try {
    tune::detail::check(plan.mlflow);
  } catch (const std::invalid_argument& refused) {
    file.refuse("mlflow", "cannot be: " + tune::detail::with_sweep_keys(refused.what()));
  }
  if (const auto budget = file.number("time_budget", 0, kMostSeconds))
    plan.time_budget = seconds(*budget);
  if (const auto silence = file.number("notice_silence", 0, kMostSeconds))
    plan.notice_silence = seconds(*silence);
  set(sweep.grace_s, file.number("grace", 0, kMostSeconds));
  if (const auto folder = file.text("workdir")) {
    sweep.workdir = (std::filesystem::path(sweep.directory) / *folder).string();
    sweep.workdir_at = file.place_of("workdir");
  }
  plan.stop_grace = seconds(sweep.grace_s + kMoreToStop);
  plan.stop_grace_text = fmt::format("grace + {} s", kMoreToStop);
  // The hosts send SIGTERM and SIGKILL themselves; a host that does not answer is ended later.
  plan.end_grace = seconds(sweep.grace_s + kMoreToEnd);
  plan.end_grace_text = fmt::format("grace + {} s", kMoreToEnd);
  const auto storage = std::filesystem::path(file.text("storage").value_or("troupe-runs"));
  plan.storage = std::filesystem::path(sweep.directory) / storage;
  sweep.storage_at = file.place_of("storage");
}

toml::table parsed(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    refuse(
        fmt::format("'{}' is a folder: give the file of the sweep, and name the folder of one of "
                    "its runs with --run",
                    config::printable(file)));
  }
  try {
    return toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    if (error.source().begin.line == 0) {
      refuse(fmt::format("'{}' cannot be read: is it there?", config::printable(file)));
    }
    refuse_at(file, error.source(), std::string(error.description()));
  }
}

void read_command(TomlTable& file, SweepFile& sweep) {
  sweep.command = file.texts("command").value_or(std::vector<std::string>());
  if (sweep.command.empty())
    file.refuse_missing(
        "command",
        R"(is missing: what a trial runs, command = ["python3", "train.py", "--lr={lr}"])");
  sweep.command_at = file.place_of("command");
  for (std::size_t i = 0; i < sweep.command.size(); ++i) {
    if (has_zero(sweep.command[i])) file.refuse("command", i, kZero);
  }
  if (sweep.command.front().empty())
    file.refuse("command", 0, "begins with an empty word: it has to be a program");
}

void read_variables(TomlTable& file, SweepFile& sweep) {
  auto variables = file.table("env");
  if (!variables) return;
  for (const auto& name : variables->keys()) {
    const auto value = *variables->text(name);
    if (name.empty() || name.find('=') != std::string::npos)
      variables->refuse(name, "is no name of a variable: it has a letter, and no '='");
    if (has_zero(name) || has_zero(value)) variables->refuse(name, kZero);
    sweep.variables.emplace_back(name, value);
  }
}

/// Without a number of trials a grid has one.
void check_count(const TomlTable& file, const tune::detail::Plan& plan) {
  const auto is_grid = [](const auto& field) {
    return field.domain.kind() == tune::Domain::Kind::Grid;
  };
  if (plan.trials == 0 && !plan.searcher && std::ranges::none_of(plan.space, is_grid)) {
    file.refuse("trials",
                "is missing, and no field is a grid, which would say how many: trials = 50");
  }
}

/// What is put in for {name} has to be known.
void check_places(TomlTable& file, const SweepFile& sweep) {
  std::vector<Field> fields;
  for (const auto& dimension : sweep.plan.space) fields.push_back({dimension.name, "", ""});
  fields = with_paths(std::move(fields), "");
  const auto why_not = [&fields](const std::string& text) -> std::string {
    try {
      filled_in(text, fields);
      return {};
    } catch (const std::invalid_argument& refused) {
      return fmt::format("cannot be: {}", refused.what());
    }
  };
  for (std::size_t i = 0; i < sweep.command.size(); ++i) {
    if (const auto why = why_not(sweep.command[i]); !why.empty()) file.refuse("command", i, why);
  }
  for (const auto& [name, value] : sweep.variables) {
    if (const auto why = why_not(value); !why.empty()) file.table("env")->refuse(name, why);
  }
  if (const auto why = why_not(sweep.event_folder); !why.empty())
    file.table("reports")->refuse("tensorboard", why);
}

}  // namespace

SweepFile read_sweep(const std::string& file) {
  const auto document = parsed(file);
  TomlTable table(file, document, "");
  SweepFile sweep;
  sweep.file = file;
  sweep.plan.sweep_file = file;
  sweep.directory = std::filesystem::absolute(file).parent_path().string();
  read_command(table, sweep);
  sweep.plan.space = space_of(table);
  read_run(table, sweep);
  sweep.plan.scheduler = scheduler_of(table, sweep.plan.space);
  const auto scheduler = document.at_path("scheduler.type").value_or(std::string());
  sweep.has_rungs = scheduler == "asha" || scheduler == "hyperband";
  sweep.plan.searcher = searcher_of(table);
  sweep.plan.first = first_of(table, sweep.plan.space);
  read_gang(table, sweep);
  read_reports(table, sweep);
  read_stop(table, sweep.plan);
  set(sweep.prints, table.truth("print"));
  read_variables(table, sweep);
  table.finish();
  check_places(table, sweep);
  check_count(table, sweep.plan);
  return sweep;
}

}  // namespace troupe::launch
