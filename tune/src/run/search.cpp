#include <troupe/tune/detail/search.hpp>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "output/display.hpp"
#include "output/report_files.hpp"
#include "run/drive.hpp"
#include "run/gang_launcher.hpp"
#include "run/interrupt.hpp"
#include "run/local_launcher.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

bool has_grid(const SearchSpace& space) {
  return std::ranges::any_of(
      space, [](const auto& dim) { return dim.domain.kind() == Domain::Kind::Grid; });
}

std::unique_ptr<Searcher> searcher_of(const Plan& plan) {
  if (plan.searcher) return plan.searcher(plan.space, plan.seed, plan.trials);
  if (has_grid(plan.space))
    return std::make_unique<GridSearcher>(plan.space, plan.seed, plan.samples, plan.trials);
  if (plan.trials == 0)
    throw std::invalid_argument(
        "tune: .trials is 0, and the space has no grid that would say how many");
  return std::make_unique<RandomSearcher>(plan.space, plan.seed, plan.trials);
}

void check(const Plan& plan) {
  if (!plan.scheduler)
    throw std::invalid_argument(
        "tune: .scheduler is empty; tune::fifo() lets every trial run to its end");
  if (plan.workers < 1)
    throw std::invalid_argument(fmt::format("tune: .each.workers is {}, at least 1", plan.workers));
  if (plan.time_budget.count() < 0 || plan.stop_grace.count() < 0) {
    throw std::invalid_argument(
        fmt::format("tune: time_budget {} ms and stop_grace {} ms are at least 0",
                    plan.time_budget.count(), plan.stop_grace.count()));
  }
}

/// What the scheduler needs of the run, before anything is launched.
void check(const Plan& plan, const SchedulerNeeds& needs, const Searcher& searcher) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("tune: " + what); };
  if (plan.check_fields) plan.check_fields(needs.mutations);
  if (needs.own_search && plan.searcher) {
    refuse("this .scheduler searches by itself, by changing configurations; leave out .searcher");
  }
  if (needs.checkpoints && plan.storage.empty()) {
    refuse(
        "this .scheduler moves checkpoints from trial to trial, and without .storage none are "
        "written; name a folder");
  }
  if (const auto size = searcher.size(); size && *size < needs.least_trials) {
    refuse(fmt::format("this .scheduler needs at least {}, and .trials makes {}",
                       counted(needs.least_trials, "trial"), *size));
  }
  if (plan.stop.reports > 0 && needs.first_judged_t > 0 &&
      needs.first_judged_t >= plan.stop.reports) {
    refuse(
        fmt::format("nobody would be judged: the first time is at t={} (interval, burn_in), and "
                    "trials end at .stop.reports = {}",
                    needs.first_judged_t, plan.stop.reports));
  }
}

/// With the fields that the scheduler changes, and the space does not have.
SearchSpace with_mutations(SearchSpace space, const SearchSpace& mutations) {
  for (const auto& dimension : mutations) {
    if (std::ranges::count(space, dimension.name, &Dimension::name) == 0)
      space.push_back(dimension);
  }
  return space;
}

Json params_of(const Plan& plan, const Experiment& experiment) {
  auto params =
      parse(journal_header(experiment.options(), experiment.searcher(), experiment.scheduler()),
            "a header");
  params["space"] = to_json(plan.space);
  params["workers"] = plan.workers;
  params["max_concurrent"] = plan.max_concurrent;
  params["time_budget_ms"] = plan.time_budget.count();
  return params;
}

Display display_of(Show show) {
  if (show == Show::None) return {Display::Kind::None, STDERR_FILENO, false};
  if (show == Show::Lines) return {Display::Kind::Lines, STDERR_FILENO, false};
  return Display::for_descriptor(STDERR_FILENO);
}

/// A run's files and display: everything that happens outside the experiment and its gangs.
class Witness {
 public:
  Witness(const Plan& plan, const Experiment& experiment)
      : experiment_{experiment}, display_{display_of(plan.show)} {
    if (plan.storage.empty()) return;
    const auto folder = make_run_folder(std::filesystem::absolute(plan.storage));
    const auto header =
        journal_header(experiment.options(), experiment.searcher(), experiment.scheduler());
    files_.emplace(folder, plan.space, params_of(plan, experiment), header);
    marker_ = folder / fmt::format(".seen-{:016x}", std::random_device()() * 0x9e3779b97f4a7c15u);
    AppendFile{marker_};
  }
  ~Witness() {
    std::error_code ignored;
    if (!marker_.empty()) std::filesystem::remove(marker_, ignored);
  }

  void see(const Event& event, const Trial* trial) {
    if (files_) files_->write(event, trial);
    display_.show(event, trial, experiment_);
  }
  void tick(Seconds now) {
    look_at_files(now);
    display_.tick(experiment_, now);
  }
  void note(const std::string& notice, Seconds now) {
    if (std::ranges::count(notices_, notice) > 0) return;
    notices_.push_back(notice);
    display_.note(notice, now);
  }
  /// A file that only who shares the run's folder sees; empty: there is no folder.
  const std::filesystem::path& marker() const { return marker_; }

  std::filesystem::path folder() const {
    return files_ ? files_->folder() : std::filesystem::path();
  }

  Outcome conclude(Seconds now) {
    write_summary(now);
    auto overview = overview_of(experiment_, now, 0);
    overview.folder = folder().string();
    overview.notices.insert(overview.notices.end(), notices_.begin(), notices_.end());
    display_.finish(experiment_, overview);
    const auto* best = experiment_.best();
    return {.objective = experiment_.options().objective,
            .trials = experiment_.trials(),
            .best = best ? std::optional(best->id) : std::nullopt,
            .rungs = experiment_.rungs(),
            .ended_early = experiment_.why_closed(),
            .summary = render_summary(overview, {}),
            .folder = folder(),
            .duration = now};
  }

 private:
  /// Says once that a disk is full, and once that it is no more.
  void look_at_files(Seconds now) {
    if (!files_) return;
    const auto trouble = files_->flush();
    if (!trouble.empty() && trouble_.empty())
      note(trouble + ". The search goes on, and what is not written follows when there is room",
           now);
    if (trouble.empty() && !trouble_.empty())
      note("what the disk had no room for is written now", now);
    trouble_ = trouble;
  }

  void write_summary(Seconds now) {
    if (!files_) return;
    look_at_files(now);
    if (!trouble_.empty())
      note("the files are not whole; the results that this program has are", now);
    try {
      files_->write_summary(experiment_, now);
    } catch (const std::runtime_error& failed) {
      note(failed.what(), now);
    }
  }

  const Experiment& experiment_;
  Display display_;
  std::string trouble_;  // with the files, when they were looked at last
  std::optional<ReportFiles> files_;
  std::filesystem::path marker_;
  std::vector<std::string> notices_;
};

/// After a takeover a trial writes to another folder: what it wrote before may be somebody's
/// checkpoint, and t may go back.
std::filesystem::path folder_of(const Launch& launch, const std::filesystem::path& run) {
  if (run.empty()) return {};
  const auto own = run / "trials" / std::to_string(launch.trial);
  return launch.takeovers == 0 ? own : own / fmt::format("takeover-{}", launch.takeovers);
}

Work work_of(const Launch& launch, const Witness& witness, std::uint64_t seed) {
  return {.config = launch.config,
          .info = {.storage = folder_of(launch, witness.folder()).string(),
                   .restore_from = launch.checkpoint,
                   .name = fmt::format("trial {}", launch.trial),
                   .seed = Random(seed, launch.trial, "trial").next(),
                   .reconfigured = launch.reconfigured},
          .marker = witness.marker().string()};
}

}  // namespace

void check(const Each& each) {
  try {
    troupe::detail::own(each.each);
  } catch (const std::invalid_argument& refused) {
    throw std::invalid_argument(fmt::format("tune: .each.each: {}", refused.what()));
  }
}

std::string describe(const Trial& trial, const Objective& objective) {
  const auto& values = config_of_best(trial);
  const auto config = values.empty() ? "" : " with " + short_text(values);
  if (!trial.best)
    return fmt::format("trial {}: {}, no finite {}{}", trial.id, to_string(trial.status),
                       objective.metric, config);
  return fmt::format("trial {}: {} {} at t={}{}", trial.id, objective.metric,
                     short_number(*trial.best), trial.best_t, config);
}

void refuse_best(const Outcome& outcome) {
  std::string why = outcome.trials.empty() ? "there were no trials" : "";
  for (const auto& trial : outcome.trials) {
    why = fmt::format("trial {} is {}: {}", trial.id, to_string(trial.status),
                      trial.error.empty() ? trial.reason : trial.error);
    if (trial.status == Status::Errored) break;
  }
  throw std::runtime_error(
      fmt::format("no best trial: none reported a finite '{}'; {}", outcome.objective.metric, why));
}

namespace {

using WorkOf = std::function<Work(const Launch&)>;
using MakeLauncher = std::function<std::unique_ptr<Launcher>(WorkOf)>;

Outcome search_with(const Plan& wanted, const MakeLauncher& make_launcher) {
  check(wanted);
  auto scheduler = wanted.scheduler(wanted.objective, wanted.seed);
  const auto needs = scheduler->needs();
  auto plan = wanted;
  plan.space = with_mutations(std::move(plan.space), needs.mutations);
  auto searcher = searcher_of(plan);
  check(plan, needs, *searcher);
  const ExperimentOptions options{plan.objective, plan.seed, plan.max_failures, plan.system_retries,
                                  plan.stop};
  Experiment experiment(options, std::move(searcher), std::move(scheduler));
  Witness witness(plan, experiment);
  experiment.observe([&](const Event& event, const Trial* trial) { witness.see(event, trial); });

  const InterruptWatch interrupt;
  const auto launcher =
      make_launcher([&](const Launch& launch) { return work_of(launch, witness, plan.seed); });
  const DriveHooks hooks{
      .tick = [&](Seconds now) { witness.tick(now); },
      .interrupted = [&] { return interrupt.noted(); },
      .notice = [&](const std::string& notice) { witness.note(notice, launcher->now()); }};
  try {
    drive(experiment, *launcher, {plan.max_concurrent, plan.time_budget, plan.stop_grace}, hooks);
  } catch (const Impossible&) {
    // The cluster shrank: what was found is shown and kept.
    if (experiment.best()) witness.conclude(launcher->now());
    throw;
  }
  return witness.conclude(launcher->now());
}

}  // namespace

Outcome search(const Plan& plan, const AskForWorkers& ask_for_workers) {
  return search_with(plan, [&](WorkOf work_of) {
    return std::make_unique<GangLauncher>(ask_for_workers, std::move(work_of));
  });
}

Outcome search_here(const Plan& plan, const RunHere& run_here) {
  return search_with(plan, [&](WorkOf work_of) {
    return std::make_unique<LocalLauncher>(run_here, std::move(work_of));
  });
}

}  // namespace troupe::tune::detail
