#include <troupe/tune/detail/search.hpp>

#include <algorithm>
#include <stdexcept>

#include <unistd.h>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "output/display.hpp"
#include "output/report_files.hpp"
#include "run/drive.hpp"
#include "run/interrupt.hpp"
#include "run/thread_launcher.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

bool has_grid(const SearchSpace& space) {
  return std::ranges::any_of(space, [](const auto& dim) { return dim.domain.kind() == Domain::Kind::Grid; });
}

std::unique_ptr<Searcher> searcher_of(const Plan& plan) {
  if (plan.searcher) return plan.searcher(plan.space, plan.seed, plan.trials);
  if (has_grid(plan.space)) return std::make_unique<GridSearcher>(plan.space, plan.seed, plan.samples, plan.trials);
  if (plan.trials == 0)
    throw std::invalid_argument("tune: .trials is 0, and the space has no grid that would say how many");
  return std::make_unique<RandomSearcher>(plan.space, plan.seed, plan.trials);
}

void check(const Plan& plan) {
  if (!plan.scheduler)
    throw std::invalid_argument("tune: .scheduler is empty; tune::fifo() lets every trial run to its end");
  if (plan.workers < 1) throw std::invalid_argument(fmt::format("tune: .each.workers is {}, at least 1", plan.workers));
  if (plan.time_budget.count() < 0 || plan.stop_grace.count() < 0) {
    throw std::invalid_argument(fmt::format("tune: time_budget {} ms and stop_grace {} ms are at least 0",
                                            plan.time_budget.count(), plan.stop_grace.count()));
  }
}

Json params_of(const Plan& plan, const Experiment& experiment) {
  auto params = parse(journal_header(experiment.options(), experiment.searcher(), experiment.scheduler()), "a header");
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
  Witness(const Plan& plan, const Experiment& experiment) : experiment_{experiment}, display_{display_of(plan.show)} {
    if (plan.storage.empty()) return;
    const auto folder = make_run_folder(std::filesystem::absolute(plan.storage));
    const auto header = journal_header(experiment.options(), experiment.searcher(), experiment.scheduler());
    files_.emplace(folder, plan.space, params_of(plan, experiment), header);
  }

  void see(const Event& event, const Trial* trial) {
    if (files_) files_->write(event, trial);
    display_.show(event, trial, experiment_);
  }
  void tick(Seconds now) { display_.tick(experiment_, now); }

  std::filesystem::path folder() const { return files_ ? files_->folder() : std::filesystem::path(); }

  Outcome conclude(Seconds now) {
    if (files_) files_->write_summary(experiment_, now);
    auto overview = overview_of(experiment_, now, 0);
    overview.folder = folder().string();
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
  const Experiment& experiment_;
  Display display_;
  std::optional<ReportFiles> files_;
};

RunInfo info_of(const Launch& launch, const std::filesystem::path& folder, std::uint64_t seed) {
  const auto own = folder.empty() ? std::string() : (folder / "trials" / std::to_string(launch.trial)).string();
  return {.storage = own,
          .restore_from = launch.checkpoint,
          .name = fmt::format("trial {}", launch.trial),
          .seed = Random(seed, launch.trial, "trial").next()};
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
  const auto config = trial.config.empty() ? "" : " with " + short_text(trial.config);
  if (!trial.best)
    return fmt::format("trial {}: {}, no finite {}{}", trial.id, to_string(trial.status), objective.metric, config);
  return fmt::format("trial {}: {} {} at t={}{}", trial.id, objective.metric, short_number(*trial.best), trial.best_t,
                     config);
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

Outcome search(const Plan& plan, const RunAttempt& run_attempt) {
  check(plan);
  const ExperimentOptions options{plan.objective, plan.seed, plan.max_failures, plan.system_retries, plan.stop};
  Experiment experiment(options, searcher_of(plan), plan.scheduler(plan.objective, plan.seed));
  Witness witness(plan, experiment);
  experiment.observe([&](const Event& event, const Trial* trial) { witness.see(event, trial); });

  const InterruptWatch interrupt;
  ThreadLauncher launcher(run_attempt,
                          [&](const Launch& launch) { return info_of(launch, witness.folder(), plan.seed); });
  const DriveHooks hooks{.tick = [&](Seconds now) { witness.tick(now); },
                         .interrupted = [&] { return interrupt.noted(); }};
  try {
    drive(experiment, launcher, {plan.max_concurrent, plan.time_budget, plan.stop_grace}, hooks);
  } catch (const Impossible&) {
    if (experiment.best()) witness.conclude(launcher.now());  // the cluster shrank: what was found is shown and kept
    throw;
  }
  return witness.conclude(launcher.now());
}

}  // namespace troupe::tune::detail
