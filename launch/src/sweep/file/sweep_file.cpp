#include "sweep/file/sweep_file.hpp"

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
#include "sweep/file/search_tables.hpp"
#include "sweep/file/toml_table.hpp"
#include "sweep/report_line.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

constexpr std::int64_t kMostRanks = 1 << 16;  // of a gang
constexpr double kMostSeconds = 1e9;          // 31 years
// Beyond the grace of a program, for its host: seconds until a gang is ended that was told to stop,
// or to end with the run.
constexpr int kMoreToStop = 5;
constexpr int kMoreToEnd = 2;

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
    std::string why(error.description());
    if (why.ends_with("could not determine value type")) why += "; a text stands in quotes";
    refuse_at(file, error.source(), why);
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

/// Without a number of trials a grid has one. `is_dealt`: the searcher has repeats or batches.
void check_count(const TomlTable& file, const tune::detail::Plan& plan, bool is_dealt) {
  const auto is_grid = [](const auto& field) {
    return field.domain.kind() == tune::Domain::Kind::Grid;
  };
  if (plan.trials == 0 && !plan.searcher && std::ranges::none_of(plan.space, is_grid)) {
    file.refuse("trials",
                "is missing, and no field is a grid, which would say how many: trials = 50");
  }
  if (plan.trials == 0 && is_dealt) {
    file.refuse("trials", "is missing: searcher.repeats and searcher.batch need it, trials = 50");
  }
}

/// What is put in for {name} has to be known.
void check_places(TomlTable& file, const SweepFile& sweep) {
  std::vector<Field> fields;
  for (const auto& dimension : sweep.plan.space) fields.push_back({dimension.name, "", ""});
  fields = with_paths(std::move(fields), "");
  const auto& conditional = sweep.plan.completion.conditional;
  constexpr const char* kConditional =
      "names a field with a condition (when), which some trials have not";
  if (names_any(sweep.command.front(), conditional)) file.refuse("command", 0, kConditional);
  if (names_any(sweep.event_folder, conditional))
    file.table("reports")->refuse("tensorboard", kConditional);
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
  read_space(table, sweep.plan);
  read_objectives(table, sweep.plan);
  read_run(table, sweep);
  sweep.plan.scheduler = scheduler_of(table, sweep.plan.space);
  const auto scheduler = document.at_path("scheduler.type").value_or(std::string());
  sweep.has_rungs = scheduler == "asha" || scheduler == "hyperband";
  sweep.plan.searcher = searcher_of(table);
  sweep.repeats = document.at_path("searcher.repeats").value_or(std::size_t{1});
  read_gang(table, sweep);
  read_reports(table, sweep);
  read_stop(table, sweep.plan);
  set(sweep.prints, table.truth("print"));
  if (!sweep.prints) sweep.plan.output_file = "output-rank-{}.log";
  read_variables(table, sweep);
  table.finish();
  check_places(table, sweep);
  const bool is_dealt = document.at_path("searcher.repeats") || document.at_path("searcher.batch");
  check_count(table, sweep.plan, is_dealt);
  return sweep;
}

}  // namespace troupe::launch
