#include <stdexcept>

#include <fmt/format.h>

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
    refuse(fmt::format(".curves is empty, and the run has {}: give the value of each at report t",
                       counted(world.metrics.size(), "objective")));
  }
  if (!world.curve && !world.curves)
    refuse(".curve is empty: give the metric of a configuration at its report t");
  if (world.curve && world.curves) refuse(".curve and .curves are both given");
  if (world.reports < 1) refuse(fmt::format(".reports is {}, at least 1", world.reports));
  if (world.gangs < 1) refuse(".gangs is 0, at least 1");
  if (!(world.launch.count() >= 0))
    refuse(fmt::format(".launch is {} s, at least 0", world.launch.count()));
}

void note(Simulated& simulated, const Experiment& experiment, std::uint64_t steps, Seconds now) {
  const auto* best = experiment.best();
  auto& so_far = simulated.improvements;
  if (best && (so_far.empty() || so_far.back().value != *best->best))
    so_far.push_back({now, steps, best->id, *best->best});
}

Simulated run(const Plan& wanted, const World& world) {
  const auto prepared = prepare(wanted, true);
  auto& experiment = *prepared.experiment;
  SimulatedLauncher launcher(world);
  Simulated simulated;
  experiment.observe([&](const Event& event, const Trial*) {
    if (event.kind == Event::Kind::Reported)
      note(simulated, experiment, launcher.steps(), launcher.now());
  });
  drive(experiment, launcher, {prepared.plan.max_concurrent, prepared.plan.time_budget, Seconds(0)},
        {});
  const auto now = launcher.now();
  simulated.outcome = outcome_of(experiment, now);
  simulated.outcome.summary = render_summary(overview_of(experiment, now, 0), {});
  simulated.steps = launcher.steps();
  simulated.launches = launcher.launches();
  const auto offered = now.count() * static_cast<double>(world.gangs);
  simulated.busy = offered > 0 ? launcher.trained().count() / offered : 0;
  simulated.notices = experiment.notices();
  return simulated;
}

}  // namespace

std::string budget_text(std::uint64_t steps, std::uint64_t launches, double busy) {
  return fmt::format("  trained {} in {}; the places were busy {:.0f} % of the time\n",
                     counted(steps, "step"),
                     launches == 1 ? "1 launch" : fmt::format("{} launches", launches), 100 * busy);
}

Simulated simulate(const Plan& wanted, const World& given) {
  auto world = given;
  world.metrics = {wanted.objective.metric};
  if (!wanted.objectives.empty()) world.metrics.clear();
  for (const auto& objective : wanted.objectives) world.metrics.push_back(objective.metric);
  check(world);
  return with_words_of(wanted, [&] { return run(wanted, world); });
}

}  // namespace troupe::tune::detail
