#include "output/overview.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <troupe/tune/results.hpp>

#include "objectives/front.hpp"
#include "text/cause.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

/// In the order of `fields`; one that the trial runs without is "-".
std::vector<std::string> values_of(const Configuration& config,
                                   const std::vector<std::string>& fields) {
  std::vector<std::string> values;
  for (const auto& field : fields) {
    const auto at = std::ranges::find(config, field, &Configuration::value_type::first);
    values.push_back(at == config.end() ? "-" : short_text(at->second));
  }
  return values;
}

Overview::Row row_of(const Trial& trial, const Objective& objective,
                     const std::vector<std::string>& fields) {
  Overview::Row row{
      .trial = trial.id,
      .status = trial.status,
      .ended_with_run = trial.is_unfinished() || trial.is_unstarted() ? ending_of(trial) : "",
      .t = trial.t,
      .best = trial.best,
      .best_t = trial.best_t};
  row.last = objective.value_in(trial.last);
  row.values = values_of(trial.config, fields);
  row.note = trial.status == Status::Errored ? trial.error : trial.reason;
  if (trial.status == Status::Running && trial.workers > 0 && row.note.empty())
    row.note =
        fmt::format("{} since t={}", counted(static_cast<std::size_t>(trial.workers), "worker"),
                    trial.checkpoint_t);
  if (!trial.over() && !trial.takeovers.empty() && row.note.empty()) {
    const auto& last = trial.takeovers.back();
    row.note = fmt::format("took over trial {} at t={}: {}", last.donor, last.checkpoint_t,
                           describe_change(last.donor_config, last.after));
  }
  return row;
}

/// Trials that the searcher may still make; none: it does not say.
std::optional<std::uint64_t> left_of(const Experiment& experiment) {
  const auto size = experiment.searcher().size();
  if (!size) return std::nullopt;
  return *size - std::min<std::uint64_t>(*size, experiment.trials().size());
}

/// What runs, what is to come, and how long that may take.
void add_progress(Overview& overview, const Experiment& experiment, int ranks) {
  constexpr std::size_t least = 3;  // trials whose time says something
  const auto& trials = experiment.trials();
  Seconds ended{0}, running{0};
  std::size_t count = 0;
  for (const auto& trial : trials) {
    if (trial.over() && trial.has_started) {
      ended += trial.ended - trial.started;
      ++count;
    } else if (trial.status == Status::Running) {
      overview.ranks += static_cast<std::size_t>(trial.workers > 0 ? trial.workers : ranks);
    }
  }
  overview.not_begun = not_begun(experiment);
  overview.to_come = experiment.closed() ? 0 : left_of(experiment);
  const auto at_once = overview.count(Status::Running);
  if (count < least || at_once == 0 || !overview.to_come) return;
  const auto usual = ended / static_cast<double>(count);
  for (const auto& trial : trials) {
    if (trial.status == Status::Running)
      running += std::max(Seconds(0), usual - (overview.elapsed - trial.started));
  }
  overview.left =
      (static_cast<double>(*overview.to_come) * usual + running) / static_cast<double>(at_once);
}

/// The trials to show, in the order to show them in.
std::vector<const Trial*> shown(const std::vector<Trial>& trials, std::size_t most) {
  std::vector<const Trial*> chosen;
  for (const auto& trial : trials) {
    if (trial.in_flight || trial.over() || trial.status == Status::Paused) chosen.push_back(&trial);
  }
  const auto before = [](const Trial* a, const Trial* b) {
    if (a->over() != b->over()) return b->over();
    if (a->over() && a->ended != b->ended) return a->ended > b->ended;
    return a->id < b->id;
  };
  const auto kept = std::min(most, chosen.size());
  std::ranges::partial_sort(chosen, chosen.begin() + static_cast<std::ptrdiff_t>(kept), before);
  chosen.resize(kept);
  return chosen;
}

void show_front(Overview& overview, const Experiment& experiment) {
  const auto& objectives = experiment.options().objectives;
  if (objectives.empty()) return;
  const auto front = pareto_front(experiment.trials(), overview.objective, objectives);
  overview.front_size = front.size();
  for (std::size_t i = 0; i < std::min(front.size(), Overview::kMostOfFront); ++i)
    overview.front.push_back(detail::describe_values(experiment.trials()[front[i]], objectives));
  const Trial* nearest = nullptr;
  for (const auto& trial : experiment.trials()) {
    if (trial.values.empty() || trial.violation == 0 || trial.status == Status::Errored) continue;
    ++overview.beyond_limits;
    if (!nearest || trial.violation < nearest->violation) nearest = &trial;
  }
  if (nearest)
    overview.nearest =
        fmt::format("{}; violation {}", detail::describe_values(*nearest, objectives),
                    short_number(nearest->violation));
}

void note_error(Overview& overview, const Trial& trial) {
  const bool has_reported = trial.t > 0;
  const auto cause_in = [&](const std::string& error) {
    return has_reported ? cause_of(error) : cause_without_report(error);
  };
  const auto same = std::ranges::find_if(overview.errored, [&](const Overview::Row& row) {
    return (row.t > 0) == has_reported && cause_in(row.note) == cause_in(trial.error);
  });
  if (same != overview.errored.end()) {
    ++same->alike;
  } else if (overview.errored.size() < Overview::kMostErrors) {
    overview.errored.push_back(row_of(trial, overview.objective, overview.fields));
  }
}

/// Whether the trials have all ended before the first rung.
bool was_none_judged(const Overview& overview) {
  const auto is_empty = [](const RungSummary& rung) { return rung.reached == 0; };
  return overview.count(Status::Terminated) > 0 && !overview.rungs.empty() &&
         std::ranges::all_of(overview.rungs, is_empty);
}

std::string none_was_judged(const std::vector<RungSummary>& rungs) {
  return fmt::format(
      "no trial came to the first rung, at t={}: the scheduler has compared none of them; let it "
      "judge earlier, or let trials report more often",
      std::ranges::min(rungs, {}, &RungSummary::t).t);
}

}  // namespace

std::string_view status_text(Status status, bool is_abandoned) {
  return is_abandoned && status == Status::Running ? "interrupted" : to_string(status);
}

std::string_view status_text(const Trial& trial, bool is_abandoned) {
  return is_abandoned && trial.status == Status::Running ? "interrupted" : ending_of(trial);
}

std::string_view status_text(const Overview::Row& row, bool is_abandoned) {
  return row.ended_with_run.empty() ? status_text(row.status, is_abandoned) : row.ended_with_run;
}

std::size_t Overview::trials() const {
  return std::accumulate(by_status.begin(), by_status.end(), unfinished + unstarted);
}

Overview overview_of(const Experiment& experiment, Seconds now, std::size_t most_rows, int ranks) {
  const auto& objective = experiment.options().objective;
  Overview overview{
      .objective = objective, .objectives = experiment.options().objectives, .elapsed = now};
  for (const auto& trial : experiment.trials()) {
    for (const auto& [name, value] : trial.config) {
      if (std::ranges::count(overview.fields, name) == 0) overview.fields.push_back(name);
    }
  }
  for (const auto& trial : experiment.trials()) {
    ++(trial.is_unfinished()  ? overview.unfinished
       : trial.is_unstarted() ? overview.unstarted
                              : overview.by_status[static_cast<std::size_t>(trial.status)]);
    if (trial.status == Status::Errored) note_error(overview, trial);
    const auto is_other = [&](const Takeover& takeover) { return takeover.donor != trial.id; };
    overview.takeovers +=
        static_cast<std::size_t>(std::ranges::count_if(trial.takeovers, is_other));
    overview.pauses += static_cast<std::size_t>(trial.pauses);
    if (trial.restarts == 0) continue;
    overview.restarts += static_cast<std::size_t>(trial.restarts);
    overview.restarted = {trial.id, trial.restart_reason};
  }
  for (const auto* trial : shown(experiment.trials(), most_rows))
    overview.rows.push_back(row_of(*trial, objective, overview.fields));
  if (const auto* best = experiment.best()) {
    overview.best = row_of(*best, objective, overview.fields);
    overview.best_checkpoint = best->best_checkpoint;
    overview.best_checkpoint_t = best->best_checkpoint_t;
    const auto takeovers = std::min(best->best_takeovers, best->takeovers.size());
    // What it has now may be another configuration than the one that its best report came from.
    overview.best->values = values_of(config_of_best(*best), overview.fields);
    if (takeovers > 0) overview.schedule = schedule_to_best(experiment.trials(), best->id);
  }
  overview.have_all_failed =
      !overview.best && std::ranges::any_of(experiment.trials(), [](const Trial& trial) {
        return trial.best.has_value();
      });
  add_progress(overview, experiment, ranks);
  if (most_rows == 0) show_front(overview, experiment);  // a table, drawn again and again, has none
  overview.notices = experiment.notices();
  overview.rungs = experiment.rungs();
  if (is_over(experiment, overview) && !experiment.closed() && was_none_judged(overview))
    overview.notices.push_back(none_was_judged(overview.rungs));
  overview.ended_early = experiment.why_closed();
  overview.may_go_on = experiment.closed() && !experiment.ended_as_asked();
  return overview;
}

std::uint64_t not_begun(const Experiment& experiment) {
  return experiment.closed() ? left_of(experiment).value_or(0) : 0;
}

bool is_over(const Experiment& experiment, const Overview& overview) {
  if (experiment.closed()) return true;
  const auto under_way = overview.count(Status::Pending) + overview.count(Status::Running) +
                         overview.count(Status::Paused);
  return under_way == 0 && overview.to_come == 0;
}

}  // namespace troupe::tune
