#include "run/prepare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "objectives/front.hpp"
#include "searchers/completed.hpp"
#include "searchers/given.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

/// A grid of more points is walked with those that come to the same.
constexpr std::uint64_t kMostComparedPoints = 1'000'000;

bool has_grid(const SearchSpace& space) {
  return std::ranges::any_of(
      space, [](const auto& dim) { return dim.domain.kind() == Domain::Kind::Grid; });
}

/// `trials`: that it may suggest.
std::unique_ptr<Searcher> searcher_of(const Plan& plan, std::uint64_t trials) {
  if (plan.searcher)
    return plan.searcher({.space = plan.space,
                          .objective = plan.objective,
                          .seed = plan.seed,
                          .trials = trials,
                          .samples = plan.samples,
                          .objectives = plan.objectives,
                          .constraints = plan.constraints});
  if (has_grid(plan.space))
    return std::make_unique<GridSearcher>(plan.space, plan.seed, plan.samples, trials);
  if (trials == 0)
    throw std::invalid_argument(
        "tune: .trials is 0, and the space has no grid that would say how many");
  return std::make_unique<RandomSearcher>(plan.space, plan.seed, trials);
}

/// "the lowest 'loss' and the highest 'accuracy'".
std::string in_words(const std::vector<Objective>& objectives) {
  std::string words;
  for (const auto& objective : objectives) {
    words += fmt::format("{}the {} '{}'", words.empty() ? "" : " and ",
                         objective.mode == Mode::Max ? "highest" : "lowest", objective.metric);
  }
  return words;
}

/// `index`: of the result. A run without constraints has no use for how far those of an earlier run were exceeded.
GivenSearcher::Known known_of(const KnownValue& known, std::size_t index, const Plan& plan) {
  const auto& [config, value, values, violation, found_for] = known;
  const auto objectives = plan.objectives.size();  // where there are several, else 0
  const auto here = objectives == 0 ? std::vector{plan.objective} : plan.objectives;
  if (!found_for.empty() && found_for != here) {
    throw std::invalid_argument(
        fmt::format("tune: .known[{}] was found by a search for {}, and this one is for {}; where "
                    "both mean the "
                    "same, clear the .objectives of each known result",
                    index, in_words(found_for), in_words(here)));
  }
  if (values.size() != objectives) {
    throw std::invalid_argument(
        objectives == 0
            ? fmt::format("tune: .known[{}] has {}, and the run has one objective: give .value",
                          index, counted(values.size(), "value"))
            : fmt::format(
                  "tune: .known[{}] has {}, and .objectives names {}: give .values, one for each",
                  index, counted(values.size(), "value"), objectives));
  }
  if (!(violation >= 0)) {
    throw std::invalid_argument(
        fmt::format("tune: .known[{}] has the violation {}; it is 0 where the limits of "
                    ".constraints are "
                    "kept to, else how far they are exceeded",
                    index, violation));
  }
  return {config, values.empty() ? value : values.front(), values,
          plan.constraints.empty() ? 0 : violation};
}

std::unique_ptr<Searcher> with_given(const Plan& plan) {
  if (plan.first.empty() && plan.known.empty()) return searcher_of(plan, plan.trials);
  if (plan.trials > 0 && plan.first.size() > plan.trials) {
    throw std::invalid_argument(fmt::format("tune: .first has {}, and .trials is {}",
                                            counted(plan.first.size(), "configuration"),
                                            plan.trials));
  }
  std::vector<GivenSearcher::Known> known;
  for (const auto& each : plan.known) known.push_back(known_of(each, known.size(), plan));
  const auto trials = plan.trials == 0 ? 0 : plan.trials + plan.known.size();
  return std::make_unique<GivenSearcher>(searcher_of(plan, trials), plan.first, std::move(known),
                                         plan.trials);
}

/// Of a grid that is walked once, in a space of nothing else: its points. Else 0.
std::uint64_t points_of(const Plan& plan, const Searcher& searcher) {
  const bool is_asked_for_all = plan.trials == 0 && plan.samples == 1 && !plan.searcher;
  const auto is_drawn = [](const Dimension& dim) {
    return dim.domain.kind() != Domain::Kind::Grid && dim.domain.kind() != Domain::Kind::Constant;
  };
  const bool has_given = !plan.first.empty() || !plan.known.empty();
  if (!is_asked_for_all || has_given || std::ranges::any_of(plan.space, is_drawn)) return 0;
  const auto size = searcher.size().value_or(0);
  return size <= kMostComparedPoints ? size : 0;
}

std::unique_ptr<Searcher> searcher_of(const Plan& plan) {
  auto searcher = with_given(plan);
  if (!plan.completion.complete) return searcher;
  const auto points = points_of(plan, *searcher);
  return std::make_unique<CompletedSearcher>(std::move(searcher), plan.completion, points);
}

/// Throws where a scheduler changes a struct of which a part is searched or changed too.
void refuse_parts(const SearchSpace& space, const SearchSpace& mutations) {
  const auto refuse_part = [](const std::string& inner, const std::string& outer) {
    if (inner.starts_with(outer + ".")) refuse_inner(inner, outer);
  };
  for (const auto& mutation : mutations) {
    for (const auto* fields : {&space, &mutations}) {
      for (const auto& field : *fields) {
        refuse_part(mutation.name, field.name);
        refuse_part(field.name, mutation.name);
      }
    }
  }
}

void check(const Plan& plan) {
  if (!plan.scheduler)
    throw std::invalid_argument(
        "tune: .scheduler is empty; tune::fifo() lets every trial run to its end");
  if (plan.workers < 1)
    throw std::invalid_argument(fmt::format("tune: .each.workers is {}, at least 1", plan.workers));
  if (plan.notice_silence.count() < 0) {
    throw std::invalid_argument(
        fmt::format("tune: notice_silence {} ms is at least 0", plan.notice_silence.count()));
  }
  if (plan.report_every.count() < 0) {
    throw std::invalid_argument(
        fmt::format("tune: report_every {} ms is at least 0", plan.report_every.count()));
  }
  if (plan.time_budget.count() < 0 || plan.stop_grace.count() < 0) {
    throw std::invalid_argument(
        fmt::format("tune: time_budget {} ms and stop_grace {} ms are at least 0",
                    plan.time_budget.count(), plan.stop_grace.count()));
  }
}

[[noreturn]] void refuse_options(const std::string& what) {
  throw std::invalid_argument("tune: " + what);
}

/// That there are as many trials as searcher and scheduler need.
void check_trials(const Plan& plan, const SchedulerNeeds& needs, const Searcher& searcher) {
  // Without configurations that were given, which run once each.
  if (plan.first.empty() && plan.trials > 0 && plan.trials < searcher.least_trials()) {
    refuse_options(
        fmt::format("this .searcher (tune::repeated) runs each configuration in {}, and .trials is "
                    "{}, so that none would run: give at least as many, or repeat less often",
                    counted(searcher.least_trials(), "trial"), plan.trials));
  }
  if (const auto size = searcher.size(); size && *size < needs.least_trials) {
    refuse_options(fmt::format("this .scheduler needs at least {}, and .trials makes {}",
                               counted(needs.least_trials, "trial"), *size));
  }
}

/// What the scheduler needs of the run, before anything is launched.
void check(const Plan& plan, const SchedulerNeeds& needs, const Searcher& searcher,
           bool keeps_checkpoints) {
  if (plan.check_fields) {
    plan.check_fields(needs.mutations);
    refuse_parts(plan.space, needs.mutations);
  }
  if (needs.workers > 0 && plan.is_sized)
    refuse_options(
        "this .scheduler changes the size of gangs, and so does .sized; leave one of them out");
  if (needs.own_search && plan.is_sized) {
    refuse_options(
        "this .scheduler changes configurations in gangs that run, whose size .sized takes from "
        "them; leave it out, and give .each.workers");
  }
  if (needs.workers > 0 && needs.workers != plan.workers && !plan.is_in_process) {
    refuse_options(
        fmt::format("this .scheduler says that a trial begins with {}, and .each.workers is {}",
                    counted(static_cast<std::size_t>(needs.workers), "worker"), plan.workers));
  }
  if (needs.own_search && plan.completion.complete) {
    const auto& names =
        plan.completion.computed.empty() ? plan.completion.conditional : plan.completion.computed;
    refuse_options(
        fmt::format("this .scheduler changes configurations as trials run, which knows nothing "
                    "of conditions and functions; make a plain domain of field '{}'",
                    names.front()));
  }
  if (needs.own_search && plan.searcher) {
    refuse_options(
        "this .scheduler searches by itself, by changing configurations; leave out .searcher");
  }
  if (needs.pauses && searcher.waits_for_ends()) {
    refuse_options(
        "this .scheduler pauses trials until others have come as far, and this .searcher "
        "(tune::batched) waits for the end of those that are paused; leave one of them out");
  }
  for (const auto& [name, domain] : needs.mutations) {
    if (plan.first.empty() && plan.known.empty()) break;
    const auto& config = plan.first.empty() ? plan.known.front().config : plan.first.front();
    const auto is_this = [&, name = name](const auto& field) { return field.first == name; };
    if (std::ranges::any_of(config, is_this)) continue;
    refuse_options(
        fmt::format("field '{}' stands in the .scheduler's .mutate alone, so that .first and "
                    ".known give it no value; put it into .space too",
                    name));
  }
  if (needs.checkpoints && !keeps_checkpoints) {
    refuse_options(
        "this .scheduler moves checkpoints from trial to trial, and without .storage none are "
        "written; name a folder");
  }
  check_trials(plan, needs, searcher);
  if (plan.stop.reports > 0 && needs.first_judged_t > 0 &&
      needs.first_judged_t >= plan.stop.reports) {
    refuse_options(fmt::format(
        "nobody would be judged: the first time is at t={} by the .scheduler's options, "
        "and trials end at .stop.reports = {}",
        needs.first_judged_t, plan.stop.reports));
  }
}

bool are_alike(const Plan& plan) {
  const auto is_constant = [](const Dimension& dimension) {
    return dimension.domain.kind() == Domain::Kind::Constant;
  };
  return plan.trials > 1 && plan.first.empty() && std::ranges::all_of(plan.space, is_constant);
}

/// Of the product of the grids; 0: there is no grid.
std::uint64_t points_of_grid(const Plan& plan) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t points = 0;
  for (const auto& [name, domain] : plan.space) {
    if (domain.kind() != Domain::Kind::Grid) continue;
    const std::uint64_t values = domain.values().size(),
                        before = std::max<std::uint64_t>(points, 1);
    points = before > kMost / values ? kMost : before * values;
  }
  return points;
}

/// With the fields that the scheduler changes, and the space does not have.
SearchSpace with_mutations(SearchSpace space, const SearchSpace& mutations) {
  for (const auto& dimension : mutations) {
    if (std::ranges::count(space, dimension.name, &Dimension::name) == 0)
      space.push_back(dimension);
  }
  return space;
}

}  // namespace

std::vector<Objective> objectives_of(const std::string& metric, Mode mode,
                                     const std::vector<Objective>& objectives) {
  if (objectives.empty()) return {{metric, mode}};
  if (!metric.empty()) {
    refuse_options(fmt::format(".metric is '{}', and .objectives names {}: give one of them",
                               metric, counted(objectives.size(), "metric")));
  }
  if (mode != Mode::Min)
    refuse_options(".mode stands beside .metric; each of .objectives has a mode of its own");
  for (auto each = objectives.begin(); each != objectives.end(); ++each) {
    if (each->metric.empty()) refuse_options("one of .objectives has no metric");
    if (std::ranges::count(objectives.begin(), each, each->metric, &Objective::metric) > 0)
      refuse_options(fmt::format("'{}' stands twice in .objectives", each->metric));
  }
  return objectives;
}

void check_constraints(const std::vector<Constraint>& constraints, std::size_t objectives) {
  if (!constraints.empty() && objectives == 0) {
    refuse_options(
        ".constraints are those of a run with several objectives; name these in .objectives, and "
        "search with tune::nsga2()");
  }
  for (auto each = constraints.begin(); each != constraints.end(); ++each) {
    if (each->metric.empty()) refuse_options("one of .constraints has no metric");
    if (!std::isfinite(each->limit)) {
      refuse_options(fmt::format("the limit of '{}' in .constraints is {}; give a finite one",
                                 each->metric, each->limit));
    }
    const auto is_same = [&](const Constraint& other) {
      return other.metric == each->metric && other.bound == each->bound;
    };
    if (std::any_of(constraints.begin(), each, is_same))
      refuse_options(fmt::format("'{}' has two limits of one kind in .constraints", each->metric));
    const auto is_against = [&](const Constraint& other) {
      const bool is_low = each->bound == Bound::AtLeast;
      const auto &low = is_low ? *each : other, &high = is_low ? other : *each;
      return other.metric == each->metric && low.limit > high.limit;
    };
    if (std::any_of(constraints.begin(), each, is_against)) {
      refuse_options(
          fmt::format("no '{}' keeps to both of its limits in .constraints", each->metric));
    }
  }
}

void refuse_given(std::string_view option, std::size_t index, std::string_view why) {
  throw std::invalid_argument(
      fmt::format("tune: {}[{}]: {}; give it a value of its domain, or widen that in .space",
                  option, index, why));
}

std::vector<std::string> forewarnings(const Plan& plan, const Searcher& searcher) {
  std::vector<std::string> all;
  if (are_alike(plan)) {
    all.push_back(fmt::format(
        "no field of .space has more than one value: all {} are alike but for their seeds",
        counted(plan.trials, "trial")));
  }
  const auto drawn = plan.trials - std::min<std::uint64_t>(plan.trials, plan.first.size());
  if (const auto points = points_of_grid(plan);
      !plan.searcher && plan.trials > 0 && drawn < points) {
    all.push_back(fmt::format("the grid of .space has {}, and .trials = {} reaches {} of them",
                              counted(points, "point"), plan.trials, drawn));
  }
  if (!plan.known.empty() && !plan.searcher) {
    all.push_back(
        "the results in .known change nothing without a .searcher that learns, such as "
        "tune::tpe()");
  }
  if (plan.samples != 1 && plan.trials > 0) {
    all.push_back(
        fmt::format(".samples = {} is how often each point of a grid is tried where .trials is "
                    "not given; it changes nothing beside .trials = {}",
                    plan.samples, plan.trials));
  }
  if (plan.keep_checkpoints > 0 && plan.storage.empty() && plan.resume_folder.empty())
    all.push_back(".keep_checkpoints deletes nothing without .storage, which is not given");
  if (const auto size = searcher.size(); size && *size < plan.trials) {
    all.push_back(fmt::format("the .searcher makes {} of the {} that .trials asks for", *size,
                              counted(plan.trials, "trial")));
  }
  return all;
}

void check_unsearched(const Configuration& given, const Configuration& config,
                      const Configuration& defaults, const std::vector<std::string>& conditional,
                      std::size_t index) {
  const auto has = [](const Configuration& part, const Configuration::value_type& field) {
    return std::ranges::find(part, field) != part.end();
  };
  for (const auto& field : given) {
    const bool is_used = std::ranges::find(conditional, field.first) != conditional.end();
    if (is_used || has(config, field) || has(defaults, field)) continue;
    refuse_options(
        fmt::format(".first[{}]: field '{}' is {}, and .space gives it no value, so that no trial "
                    "would have that one: put the field into .space, or the value into .config",
                    index, field.first, to_string(field.second)));
  }
}

Prepared prepare(Plan plan, bool keeps_checkpoints) {
  check(plan);
  auto scheduler = plan.scheduler(plan.objective, plan.seed);
  const auto needs = scheduler->needs();
  plan.space = with_mutations(std::move(plan.space), needs.mutations);
  auto searcher = searcher_of(plan);
  check(plan, needs, *searcher, keeps_checkpoints);
  const ExperimentOptions options{.objective = plan.objective,
                                  .seed = plan.seed,
                                  .max_failures = plan.max_failures,
                                  .system_retries = plan.system_retries,
                                  .stop = plan.stop,
                                  .objectives = plan.objectives,
                                  .constraints = plan.constraints,
                                  .of_programs = !plan.sweep_file.empty()};
  auto experiment =
      std::make_unique<Experiment>(options, std::move(searcher), std::move(scheduler));
  return {std::move(plan), std::move(experiment)};
}

Outcome outcome_of(const Experiment& experiment, Seconds now, const CheckpointNames& names) {
  std::vector<Trial> trials;
  for (const auto& trial : experiment.trials()) trials.push_back(names.with_paths(trial));
  const auto* best = experiment.best();
  const auto& objective = experiment.options().objective;
  const auto& objectives = experiment.options().objectives;
  return {.objective = objective,
          .objectives = objectives,
          .trials = std::move(trials),
          .best = best ? std::optional(best->id) : std::nullopt,
          .pareto = pareto_front(experiment.trials(), objective, objectives),
          .rungs = experiment.rungs(),
          .ended_early = experiment.why_closed(),
          .summary = {},
          .folder = {},
          .duration = now};
}

}  // namespace troupe::tune::detail
