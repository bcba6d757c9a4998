#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/cluster.hpp>
#include <troupe/tune/detail/checks.hpp>
#include <troupe/tune/detail/look.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "config/name.hpp"
#include "node/limits/cpus.hpp"
#include "node/limits/gpus.hpp"
#include "options.hpp"
#include "os/machine.hpp"
#include "output.hpp"
#include "programs/gang_room.hpp"
#include "sweep/fields.hpp"
#include "sweep/sweep.hpp"
#include "transport/socket/socket.hpp"
#include "words.hpp"

namespace troupe::cli {
namespace {

/// This machine, or the cluster that is named.
Room room_for(const TuneArguments& arguments) {
  if (is_private(arguments.address)) {
    const auto gpus = node::find_gpus(std::getenv("CUDA_VISIBLE_DEVICES")).size();
    return {
        .where = "this machine",
        .nodes = {NodeRoom{node::offered_cpus(0, os::usable_cpus()), static_cast<double>(gpus)}}};
  }
  const auto head = find_head(arguments.address);
  const auto status = ask_head(head, find_token(head, arguments.token_file), {{"do", "status"}});
  return {.where = "the cluster at " + transport::format_endpoint(head.at.host, head.at.port),
          .nodes = nodes_of(status)};
}

/// Other machines may have what is missing, or come later, so that this is no error.
void note_missing_room(const TuneArguments& arguments, const launch::SweepFile& sweep) {
  const auto ranks_of_host = std::max(1, sweep.per_node);
  const auto room = room_for(arguments);
  const auto missing = why_no_room(
      {.hosts = sweep.plan.workers / ranks_of_host,
       .ranks_of_host = ranks_of_host,
       .cpus_of_rank = sweep.each.cpus,
       .gpus_of_rank = sweep.each.gpus,
       .on_one_node = sweep.strategy == Strategy::StrictPack && sweep.per_node == 0,
       .on_other_nodes = sweep.strategy == Strategy::StrictSpread || sweep.per_node > 0},
      room);
  for (const auto& line : missing) fmt::print("{}\n", line);
  if (missing.empty()) return;
  fmt::print("  so that no trial can run on {}\n",
             room.where == "this machine" ? "this machine alone" : room.where + " as it is");
}

/// What stands for the value of a field as it is looked for.
constexpr const char* kMark = "\x01";

bool names_field(const launch::SweepFile& sweep, const std::string& name) {
  std::vector<launch::Field> fields;
  for (const auto& dimension : sweep.plan.space)
    fields.push_back({dimension.name, dimension.name == name ? kMark : "", ""});
  // A program that is given the file with all fields has each.
  fields = launch::with_paths(std::move(fields), "");
  for (auto& field : fields)
    if (field.name == "config_file") field.text = kMark;
  const auto has = [&fields](const std::string& text) {
    return launch::filled_in(text, fields).find(kMark) != std::string::npos;
  };
  return std::ranges::any_of(sweep.command, has) || has(sweep.event_folder) ||
         std::ranges::any_of(sweep.variables, [&has](const auto& one) { return has(one.second); });
}

/// A program may read them from TROUPE_TRIAL_CONFIG, so that this is no error.
void note_unused_fields(const launch::SweepFile& sweep) {
  std::vector<std::string> unused;
  for (const auto& dimension : sweep.plan.space)
    if (!names_field(sweep, dimension.name)) unused.push_back(dimension.name);
  if (unused.empty()) return;
  const bool is_one = unused.size() == 1;
  fmt::print(
      "[space] {}: neither command nor [env] names {}\n  so that a program which does not read "
      "TROUPE_TRIAL_CONFIG runs the same whatever {}\n",
      in_words(unused), is_one ? fmt::format("{{{}}}", unused.front()) : "them",
      is_one ? "its value is" : "their values are");
}

/// Empty: the scheduler has no rungs, so that nothing was simulated.
std::string text_of(const launch::SweepPreview& preview) {
  if (preview.reached.empty()) return {};
  std::string text =
      "a preview: no trial has run; times are virtual, a second for each report, and values are "
      "made up\n";
  const auto of_all =
      preview.trials < preview.asked ? fmt::format(" of the {}", preview.asked) : std::string();
  text += fmt::format("  for {}{} {}, {} at a time\n", preview.trials, of_all,
                      preview.asked == 1 ? "trial" : "trials", preview.places);
  text += tune::detail::reached_text(preview.reached);
  text += fmt::format("  {} {}{}\n", preview.reports, preview.reports == 1 ? "report" : "reports",
                      tune::detail::unstopped_text(preview.reports, preview.reports_unstopped));
  const auto places =
      preview.places == 1 ? "one place was" : fmt::format("{} places were", preview.places);
  text += fmt::format("  the {} busy {:.0f} % of the time\n", places, 100 * preview.busy);
  text += "  which trial is the best, and when it is found, cannot be told from made-up values\n";
  if (!preview.ignored.empty()) {
    text +=
        fmt::format("  without {}, as values and times are made up\n", in_words(preview.ignored));
  }
  return text;
}

/// "least loss", "least loss and the greatest speed".
std::string wanted_of(const tune::detail::Plan& plan) {
  const auto wanted = [](const tune::Objective& objective) {
    return fmt::format("{} {}", objective.mode == tune::Min ? "least" : "greatest",
                       objective.metric);
  };
  if (plan.objectives.empty()) return wanted(plan.objective);
  std::vector<std::string> all;
  for (const auto& objective : plan.objectives) all.push_back(wanted(objective));
  return fmt::format("{}", fmt::join(all, " and the "));
}

int check_sweep(const TuneArguments& arguments, const launch::SweepFile& sweep) {
  const auto missing = launch::not_here(sweep);
  if (!missing.workdir.empty()) throw std::runtime_error(missing.workdir);
  launch::check_runs(sweep);
  const auto& plan = sweep.plan;
  fmt::print("{} is a sweep over {} {}, for the {}", sweep.file, plan.space.size(),
             plan.space.size() == 1 ? "field" : "fields", wanted_of(plan));
  if (plan.trials == 0) {
    fmt::print(", every point of its grid");
  } else {
    fmt::print(", {} {}", plan.trials, plan.trials == 1 ? "trial" : "trials");
  }
  fmt::print(", {} {} each\nits results go to {}/run-N; trials would run, for example:\n",
             plan.workers, plan.workers == 1 ? "rank" : "ranks", plan.storage.string());
  for (const auto& command : launch::first_commands(sweep, 3)) fmt::print("  {}\n", command);
  fmt::print("{}", text_of(launch::preview(sweep)));
  if (!missing.program.empty())
    fmt::print("{}\n  so that no trial can run on this machine\n", missing.program);
  note_unused_fields(sweep);
  note_missing_room(arguments, sweep);
  flush_output();
  return 0;
}

/// The trials that were under way when the driver ended, "0, 2".
std::string under_way(const tune::detail::RunLook& seen) {
  std::string ids;
  for (const auto& trial : seen.outcome.trials) {
    if (trial.in_flight) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", trial.id);
  }
  return ids;
}

/// Whether anybody runs it. A driver that was killed leaves trials "running" in its files.
std::string state_of(const tune::detail::RunLook& seen) {
  if (!seen.holder.empty()) return fmt::format("  it is running in {}\n", seen.holder);
  if (seen.is_over) return {};
  const auto left = under_way(seen);
  const auto how = seen.resume_command.empty()
                       ? "the same program with .resume = true, or tune::resume on this folder,"
                       : fmt::format("`{}`", seen.resume_command);
  return fmt::format(
      "  it is not over: {} goes on with it; its driver has ended{}\n", how,
      left.empty()
          ? ""
          : fmt::format(", and none of its trials runs any more (were under way: {})", left));
}

int show_run(const TuneArguments& arguments, const tune::detail::RunLook& seen) {
  if (arguments.as_json) {
    say_all(seen.summary);
    return 0;
  }
  say_all(seen.table + "\n" + seen.outcome.summary + state_of(seen));
  return 0;
}

int report_run(const TuneArguments& arguments, const tune::detail::RunLook& seen) {
  const auto path = arguments.output.empty() ? seen.outcome.folder / "report.html"
                                             : std::filesystem::path(arguments.output);
  replace_file(path.string(), seen.report);
  say_all(path.string() + "\n");
  return 0;
}

constexpr std::size_t kMostRows = 1000;

/// The run of a sweep, or one that is named by its folder, whoever began it.
tune::detail::RunLook look_at(const TuneArguments& arguments) {
  const auto with_report =
      arguments.what == "report" ? tune::detail::WithReport::Yes : tune::detail::WithReport::No;
  std::error_code ignored;
  if (!std::filesystem::is_directory(arguments.file, ignored)) {
    return tune::detail::look_at_run(launch::read_sweep(arguments.file).plan, arguments.run,
                                     kMostRows, with_report);
  }
  if (arguments.run.empty())
    return tune::detail::look_at_folder(arguments.file, kMostRows, with_report);
  throw std::runtime_error(
      fmt::format("'{}' is a folder already, so that --run '{}' names a second one: give one of "
                  "them, or the file of the sweep with --run",
                  config::printable(arguments.file), config::printable(arguments.run)));
}

/// A new run is what `resume` goes on with from now on, where it is told of no folder.
void note_unfinished(const launch::SweepFile& sweep) {
  try {
    const auto last = tune::detail::last_run_in(sweep.plan.storage, sweep.plan.sweep_file);
    if (last.empty()) return;
    if (!tune::detail::is_abandoned(sweep.plan, last)) return;
    say(stderr,
        fmt::format("note: {} is not over: `troupe tune resume {} --run {}` goes on with it; "
                    "this is a new run\n",
                    last.string(), sweep.file, last.string()));
  } catch (const std::exception&) {
    // Runs of other sweep files or of another search, or one that was damaged.
  }
}

/// On a cluster of this machine alone, each trial would fail with the same words.
void refuse_what_is_not_here(const TuneArguments& arguments, const launch::SweepFile& sweep) {
  const bool is_each_trials = sweep.command.front().find('{') == std::string::npos;
  if (!is_private(arguments.address) || !is_each_trials) return;
  if (const auto missing = launch::not_here(sweep); !missing.program.empty())
    throw std::runtime_error(missing.program);
}

}  // namespace

int run_tune(const TuneArguments& arguments) {
  if (arguments.what == "show" || arguments.what == "report") {
    const auto seen = look_at(arguments);
    return arguments.what == "show" ? show_run(arguments, seen) : report_run(arguments, seen);
  }
  const auto sweep = launch::read_sweep(arguments.file);
  if (arguments.what == "check") return check_sweep(arguments, sweep);
  refuse_what_is_not_here(arguments, sweep);
  InitOptions init{.address = arguments.address, .token_file = arguments.token_file};
  init.name = std::filesystem::path(arguments.file).filename().string();
  init.worker_output = sweep.prints;
  init.worker_names = false;
  auto cluster = troupe::init(init);
  if (arguments.what == "resume") return launch::resume_sweep(sweep, arguments.run).exit_code();
  note_unfinished(sweep);
  return launch::run_sweep(sweep).exit_code();
}

}  // namespace troupe::cli
