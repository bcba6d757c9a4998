#include <troupe/tune/detail/search.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "objectives/best.hpp"
#include "run/drive.hpp"
#include "run/interrupt.hpp"
#include "run/launch/gang_launcher.hpp"
#include "run/launch/local_launcher.hpp"
#include "run/prepare.hpp"
#include "run/sweep_words.hpp"
#include "run/witness.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

/// After a takeover a trial writes to another folder: what it wrote before may be somebody's
/// checkpoint, and t may go back.
std::filesystem::path folder_of(const Launch& launch, const std::filesystem::path& run) {
  if (run.empty()) return {};
  const auto own = run / "trials" / std::to_string(launch.trial);
  return launch.takeovers == 0 ? own : own / fmt::format("takeover-{}", launch.takeovers);
}

Work work_of(const Launch& launch, const std::filesystem::path& run, const Witness& witness,
             const Plan& plan) {
  return {.config = launch.config,
          .info = {.storage = folder_of(launch, run).string(),
                   .restore_from = witness.names().path_of(launch.checkpoint),
                   .name = fmt::format("trial {}", launch.trial),
                   .seed = Random(plan.seed, launch.trial, "trial").next(),
                   .reconfigured = launch.reconfigured,
                   .settings = plan.settings},
          .marker = witness.marker().string(),
          .workers = launch.workers,
          .attempt = plan.keep_checkpoints > 0 ? launch.attempt : 0};
}

/// Behind the notice of a trial that does not report.
std::string what_ends_silent_trials(const Plan& plan) {
  if (plan.is_in_process) return "; it runs in this process, where only it can end itself";
  const auto limit = plan.stop.trial_time;
  if (limit.count() == 0) return in_words_of(plan, "; .stop.trial_time would end it");
  return in_words_of(plan, fmt::format("; .stop.trial_time ends it {} after its first start",
                                       exact_time(Seconds(limit))));
}

}  // namespace

RankNeeds needs_of(const troupe::detail::RequestOptions& each) {
  RankNeeds needs;
  for (const auto& [name, amount] : troupe::detail::for_rank(each).resources) {
    if (name == "cpu") needs.cpus = amount;
    if (name == "gpu") needs.gpus = amount;
  }
  return needs;
}

void check(const Each& each) {
  try {
    troupe::detail::request_of(each.each);
  } catch (const std::invalid_argument& refused) {
    throw std::invalid_argument(fmt::format("tune: .each.each: {}", refused.what()));
  }
}

void check_sized(const Each& each) {
  check(each);
  if (each.workers < 1)
    throw std::invalid_argument(
        fmt::format("tune: .sized asks for {} workers, at least 1", each.workers));
  if (each.context.type.empty()) return;
  throw std::invalid_argument(
      "tune: .sized gives a .context, which is the same for all trials: give it in .each.context");
}

void refuse_settings(const ContextSettings& settings) {
  if (settings.type.empty()) return;
  throw std::invalid_argument(fmt::format(
      "tune: .each.context is a {}, and the function takes a tune::Context, which has no options: "
      "leave .context away, or search a function that takes the context they are for",
      settings.type));
}

std::string describe(const Trial& trial, const Objective& objective) {
  const auto& values = config_of_best(trial);
  const auto config = values.empty() ? "" : " with " + short_text(values);
  if (!trial.best)
    return fmt::format("trial {}: {}, no finite {}{}", trial.id, ending_of(trial), objective.metric,
                       config);
  return fmt::format("trial {}: {} {} at t={}{}", trial.id, objective.metric,
                     short_number(*trial.best), trial.best_t, config);
}

std::string describe_values(const Trial& trial, const std::vector<Objective>& objectives) {
  std::string text;
  for (std::size_t i = 0; i < trial.values.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", objectives.at(i).metric,
                        short_number(trial.values[i]));
  const auto& config = config_of_values(trial);
  return fmt::format("trial {}: {} at t={}{}", trial.id, text, trial.values_t,
                     config.empty() ? "" : " with " + short_text(config));
}

bool tells(const Trial& trial, const std::vector<Objective>& objectives) {
  if (!trial.over() || trial.status == Status::Errored) return false;
  return objectives.empty() ? !trial.history.empty() : !trial.values.empty();
}

namespace {

/// For the trials that have no value.
[[noreturn]] void refuse_without_value(const Outcome& outcome) {
  std::string why = outcome.trials.empty() ? "there were no trials" : "";
  for (const auto& trial : outcome.trials) {
    auto reason = trial.error.empty() ? trial.reason : trial.error;
    if (reason.empty() && !trial.history.empty()) {
      reason = fmt::format("its last report of it, at t={}, has {}", trial.history.back().t,
                           to_string(trial.history.back().value));
    }
    why = fmt::format("trial {} is {}: {}", trial.id, ending_of(trial), reason);
    if (trial.status == Status::Errored) break;
  }
  throw std::runtime_error(
      fmt::format("no best trial: none reported a finite '{}'; {}", outcome.objective.metric, why));
}

/// For the trials that have values, where these do not count.
[[noreturn]] void refuse_best(const Outcome& outcome, BestOf which) {
  const auto& metric = outcome.objective.metric;
  const bool is_last = which.scope == Scope::Last;
  which.including_failed = true;
  if (const auto failed = tune::best_of(outcome.trials, outcome.objective, which)) {
    throw std::runtime_error(fmt::format(
        "no best trial: each trial {} failed; trial {} is errored: {}. Ask best({{.{}"
        "including_failed = true}}) for the best of these",
        is_last ? fmt::format("whose last '{}' is finite", metric)
                : fmt::format("that reported a finite '{}'", metric),
        *failed, outcome.trials[*failed].error, is_last ? "scope = tune::Scope::Last, ." : ""));
  }
  if (is_last && tune::best_of(outcome.trials, outcome.objective, {.including_failed = true})) {
    throw std::runtime_error(
        fmt::format("no best trial: the last '{}' of no trial is finite; best() goes by the best "
                    "report of each",
                    metric));
  }
  refuse_without_value(outcome);
}

}  // namespace

TrialId best_of(const Outcome& outcome, const BestOf& which) {
  const auto best =
      which == BestOf{} ? outcome.best : tune::best_of(outcome.trials, outcome.objective, which);
  if (!best) refuse_best(outcome, which);
  return *best;
}

void refuse_value(const Trial& trial) {
  throw std::runtime_error(
      fmt::format("trial {} has no value: it is {}: {}", trial.id, ending_of(trial),
                  trial.error.empty() ? "it reported none that is finite" : trial.error));
}

namespace {

using WorkOf = std::function<Work(const Launch&)>;
using MakeLauncher = std::function<std::unique_ptr<Launcher>(WorkOf, Seconds already)>;

/// Throws Refused.
void require_cluster() {
  if (troupe::detail::cluster_end()) return;
  raise({.kind = Failure::Kind::Refused,
         .message = "tune: this process is in no cluster: call troupe::init first, and keep the "
                    "Cluster that it returns; or set .in_process = true for a debugger"});
}

DriveLimits limits_of(const Plan& plan) {
  return {.max_concurrent = plan.max_concurrent,
          .time_budget = plan.time_budget,
          .stop_grace = plan.stop_grace,
          .end_grace = plan.end_grace,
          .stop_grace_text = plan.stop_grace_text,
          .end_grace_text = plan.end_grace_text,
          .notice_silence = plan.notice_silence,
          .for_silent_trials = what_ends_silent_trials(plan),
          .gang = in_words_of(
              plan,
              fmt::format(".each.workers = {}, each with what .each.each asks for", plan.workers)),
          .sizes_differ = plan.is_sized,
          .plain_errors = !plan.sweep_file.empty()};
}

/// `require` is called once the options are known to be good, before anything is made.
Outcome search_with(const Plan& wanted, const std::function<void()>& require,
                    const MakeLauncher& make_launcher) {
  refuse_after_interrupt();
  const auto prepared = prepare(wanted, !wanted.storage.empty() || !wanted.resume_folder.empty());
  require();
  const auto& plan = prepared.plan;
  auto& experiment = *prepared.experiment;
  Witness witness(plan, experiment);
  experiment.observe([&](const Event& event, const Trial* trial) { witness.see(event, trial); });
  experiment.requeue_running(witness.already());
  witness.go_on_with_config(plan);

  const InterruptWatch interrupt(!plan.sweep_file.empty());
  Launcher* launches = nullptr;
  auto launcher = make_launcher(
      [&](const Launch& launch) {
        return work_of(launch, witness.folder_of_trials(launches->now()), witness, plan);
      },
      witness.already());
  launches = launcher.get();
  witness.show_in_use([&] { return launcher->in_use(); });
  witness.delete_copies([&] { return launcher->take_spare_copies(); });
  bool has_cluster_ended = false;
  const DriveHooks hooks{
      .keep = [&] { witness.keep(); },
      .tick = [&](Seconds now) { witness.tick(now); },
      .interrupted = [&] { return interrupt.noted(); },
      .notice = [&](const std::string& notice) { witness.note(notice, launcher->now()); },
      .name_of_checkpoint = [&](const std::string& path) { return witness.names().name_of(path); },
      .waits =
          [&](const std::string& what) { witness.say(in_words_of(plan, what), launcher->now()); }};
  try {
    has_cluster_ended = drive(experiment, *launcher, limits_of(plan), hooks);
  } catch (const Impossible&) {
    // The cluster shrank: what was found is shown and kept.
    if (experiment.best())
      witness.conclude(launcher->now());
    else
      witness.leave_nothing();
    throw;
  } catch (const std::exception&) {
    try {
      witness.conclude(launcher->now());
    } catch (const std::exception&) {
      // It says less than the one that has ended the run.
    }
    throw;
  }
  auto outcome = witness.conclude(launcher->now());
  launcher.reset();
  outcome.signal = interrupt.signal();  // also of one that came while a tracker was waited for
  outcome.has_cluster_ended = has_cluster_ended;
  return outcome;
}

}  // namespace

Outcome search(const Plan& plan, const AskForWorkers& ask_for_workers) {
  return with_words_of(plan, [&] {
    return search_with(plan, require_cluster, [&](WorkOf work_of, Seconds already) {
      return std::make_unique<GangLauncher>(ask_for_workers, std::move(work_of), already,
                                            plan.output_file);
    });
  });
}

Outcome search_here(const Plan& plan, const RunHere& run_here) {
  const auto needs_nothing = [] {};
  return search_with(plan, needs_nothing, [&](WorkOf work_of, Seconds already) {
    return std::make_unique<LocalLauncher>(run_here, std::move(work_of), already);
  });
}

}  // namespace troupe::tune::detail
