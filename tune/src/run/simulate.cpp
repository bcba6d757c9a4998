#include <algorithm>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <troupe/tune/detail/simulate.hpp>

#include "output/overview.hpp"
#include "output/render.hpp"
#include "run/drive.hpp"
#include "run/launch/simulated_launcher.hpp"
#include "run/prepare.hpp"
#include "run/sweep_words.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

void check(const World& world) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("tune::simulate: " + what);
  };
  if (world.metrics.size() > 1 && !world.curves) {
    refuse(
        fmt::format(".curves is empty, and the run has {} in its objectives and constraints: give "
                    "the value of each at report t",
                    counted(world.metrics.size(), "metric")));
  }
  if (!world.curve && !world.curves)
    refuse(".curve is empty: give the metric of a configuration at its report t");
  if (world.curve && world.curves) refuse(".curve and .curves are both given");
  if (world.reports < 1)
    refuse(fmt::format(".reports is {}, and has to be at least 1", world.reports));
  if (world.gangs < 1) refuse(".gangs is 0, and has to be at least 1");
  if (!(world.launch.count() >= 0))
    refuse(fmt::format(".launch is {} s, at least 0", world.launch.count()));
}

void note(std::vector<Improvement>& so_far, const Experiment& experiment, std::uint64_t steps,
          Seconds now) {
  if (!experiment.options().objectives.empty()) return;  // of several none is the best
  const auto* best = experiment.best();
  if (best && (so_far.empty() || so_far.back().value != *best->best))
    so_far.push_back({now, steps, best->id, *best->best});
}

std::int64_t furthest(const std::vector<Trial>& trials) {
  std::int64_t t = 0;
  for (const auto& trial : trials) t = std::max(t, trial.t);
  return t;
}

/// A rung of several brackets counts once.
std::vector<Reached> reached_in(const Outcome& outcome) {
  if (outcome.rungs.empty()) return {};
  std::set<std::int64_t> times;
  for (const auto& rung : outcome.rungs) times.insert(rung.t);
  if (const auto end = furthest(outcome.trials); end > *times.rbegin()) times.insert(end);
  std::vector<Reached> all;
  for (const auto t : times) {
    all.push_back({t, static_cast<std::size_t>(std::ranges::count_if(
                          outcome.trials, [t](const Trial& trial) { return trial.t >= t; }))});
  }
  return all;
}

Simulated run(const Plan& wanted, const World& world) {
  const auto prepared = prepare(wanted, true);
  auto& experiment = *prepared.experiment;
  SimulatedLauncher launcher(world);
  Simulated simulated;
  experiment.observe([&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Reported)
      note(simulated.numbers.improvements, experiment, launcher.steps(), launcher.now());
  });
  // In a process there is one place, and in a simulation as many as it says.
  const auto most = prepared.plan.is_in_process ? 0 : prepared.plan.max_concurrent;
  drive(experiment, launcher, {most, prepared.plan.time_budget, Seconds(0)}, {});
  const auto now = launcher.now();
  simulated.outcome = outcome_of(experiment, now);
  auto overview = overview_of(experiment, now, 0);
  overview.best_checkpoint.clear();  // of which only the name was simulated
  simulated.outcome.summary = render_summary(overview, {});
  const auto& trials = simulated.outcome.trials;
  auto& numbers = simulated.numbers;
  numbers.reached = reached_in(simulated.outcome);
  numbers.steps = launcher.steps();
  numbers.steps_unstopped = trials.size() * static_cast<std::uint64_t>(furthest(trials));
  numbers.launches = launcher.launches();
  const auto offered = now.count() * static_cast<double>(world.gangs);
  numbers.busy = offered > 0 ? launcher.trained().count() / offered : 0;
  simulated.notices = forewarnings(prepared.plan, experiment.searcher());
  for (const auto& notice : overview.notices) simulated.notices.push_back(notice);
  return simulated;
}

}  // namespace

std::string reached_text(const std::vector<Reached>& reached) {
  if (reached.empty()) return {};
  std::vector<std::string> each;
  for (const auto& [t, trials] : reached) each.push_back(fmt::format("t={}: {}", t, trials));
  return fmt::format("  trials that reach each rung, and the end: {}\n", fmt::join(each, ", "));
}

std::string unstopped_text(std::uint64_t steps, std::uint64_t steps_unstopped) {
  if (steps_unstopped <= steps) return {};
  return fmt::format(", {} if each trial came as far as the furthest", steps_unstopped);
}

std::string preview_text(const std::string& summary, const PreviewNumbers& numbers) {
  const auto launches =
      numbers.launches == 1 ? "1 launch" : fmt::format("{} launches", numbers.launches);
  auto text =
      "a preview: no trial has run; times are virtual, and values are those of the curves\n" +
      summary + reached_text(numbers.reached);
  text += fmt::format("  {} in {}{}\n", counted(numbers.steps, "step"), launches,
                      unstopped_text(numbers.steps, numbers.steps_unstopped));
  text += fmt::format("  the places were busy {:.0f} % of the time\n", 100 * numbers.busy);
  if (numbers.improvements.empty()) return text;
  const auto& best = numbers.improvements.back();
  return text +
         fmt::format(
             "  the best value, {}, was first reached by trial {} after {} and {} of all trials\n",
             short_number(best.value), best.trial, short_time(best.now),
             counted(best.steps, "step"));
}

Simulated simulate(const Plan& wanted, const World& given) {
  auto world = given;
  world.metrics = {wanted.objective.metric};
  if (!wanted.objectives.empty()) world.metrics.clear();
  for (const auto& objective : wanted.objectives) world.metrics.push_back(objective.metric);
  for (const auto& constraint : wanted.constraints) {
    if (std::ranges::count(world.metrics, constraint.metric) == 0)
      world.metrics.push_back(constraint.metric);
  }
  check(world);
  return with_words_of(wanted, [&] { return run(wanted, world); });
}

}  // namespace troupe::tune::detail
