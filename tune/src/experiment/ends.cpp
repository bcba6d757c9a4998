#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include <troupe/tune/experiment.hpp>

#include "experiment/stopping.hpp"
#include "text/format.hpp"

// How attempts and trials end: as they were told, by a failure, or with the run.
namespace troupe::tune {
namespace {

std::string never_whole(const Trial& trial, const ExperimentOptions& options) {
  std::vector<std::string> metrics;
  for (const auto& objective : options.objectives) metrics.push_back(objective.metric);
  for (const auto& constraint : options.constraints) {
    if (std::ranges::count(metrics, constraint.metric) == 0) metrics.push_back(constraint.metric);
  }
  std::string names, pairs;
  for (const auto& metric : metrics) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", metric);
    pairs += fmt::format(R"({}"{}": 0.5)", pairs.empty() ? "" : ", ", metric);
  }
  return fmt::format(
      "a trial ended, and none of its reports had all of {}; its last one has {}: it is in no "
      "Pareto front. Report them in one {}",
      names, names_of(trial.last),
      options.of_programs ? fmt::format("line `troupe: {{{}}}`", pairs) : "ctx.report");
}

std::string never_reported(const Trial& trial, const std::string& metric, bool of_programs) {
  if (trial.t == 0 && of_programs) {
    return fmt::format(R"(it ended without a report; print a line `troupe: {{"{}": 0.5}}`)",
                       metric);
  }
  if (trial.t == 0)
    return fmt::format("it returned without a report; call ctx.report with '{}'", metric);
  return fmt::format("it never reported '{}'; its reports have {}", metric, names_of(trial.last));
}

}  // namespace

void Experiment::take_back(Trial& trial) {
  assert(trial.in_flight);
  trial.in_flight = false;
  trial.replaced = false;
  --in_flight_;
}

void Experiment::finish(Trial& trial, Status status, Seconds now) {
  const bool is_best = trial.best && best() && *trial.best == *best()->best;  // or one of equals
  trial.status = status;
  trial.stopping = false;
  trial.ended = now;
  trial.earlier.clear();
  if (status != Status::Errored && !closed_) {
    ++progress_.no_better;
    ++progress_.ended;
  }
  if (status == Status::Errored && is_best) replace_best();
  scheduler_->on_end(trial.id, population());
  const auto last =
      trial.history.empty() ? std::nullopt : std::optional(trial.history.back().value);
  try {
    searcher_->on_end(trial.id, {.best = trial.best,
                                 .last = last,
                                 .t = trial.t,
                                 .errored = status == Status::Errored,
                                 .stopped = status == Status::Stopped,
                                 .values = trial.values,
                                 .violation = trial.violation});
  } catch (...) {
    if (!thrown_) thrown_ = std::current_exception();
  }
}

void Experiment::finish_with_run(Trial& trial, Seconds now) {
  trial.reason = std::string(kRunEnded) + why_closed_;
  trial.ended_with_run = true;
  finish(trial, Status::Stopped, now);
}

/// Makes of a trial whose attempt was told to end what it was told: over, or paused.
void Experiment::conclude(Trial& trial, Seconds now) {
  if (trial.outcome != Status::Paused) return finish(trial, trial.outcome, now);
  trial.stopping = false;
  if (closed_) {
    return finish_with_run(trial, now);
  }
  trial.status = Status::Paused;
  ++trial.pauses;
}

void Experiment::ended(TrialId id, Seconds now) {
  auto& trial = known(id);
  take_back(trial);
  // It was told so at steps that an earlier attempt had reported, and these are no events.
  const bool was_told_of_end = closed_ && trial.repeating && !trial.stopping;
  if (was_told_of_end) {
    finish_with_run(trial, now);
  } else {
    if (!trial.stopping) take_back_idle_takeover(trial);
    judge_end(trial);
    conclude(trial, now);
  }
  const bool is_over = trial.over() && end_as_asked(id, now);
  tell({.kind = Event::Kind::Ended, .trial = id, .attempt = trial.attempt, .now = now});
  if (is_over) tell({.kind = Event::Kind::Closed, .text = why_closed_, .now = now});
}

bool Experiment::end_overdue(TrialId id, Seconds now) {
  auto& trial = known(id);
  const bool is_training = trial.in_flight && trial.status == Status::Running;
  if (!is_training || trial.stopping || trial.replaced || closed_) return false;
  const auto why = why_time_is_up(options_.stop, trial, now);
  // One that was paused, or lost by the cluster, comes to a report first.
  const bool is_new = now - trial.attempt_began < options_.stop.trial_time;
  if (!why || is_new) return false;
  const Decision decision = Finish{*why + " without another report"};
  act_on(trial, decision);
  if (trial.history.empty()) {
    trial.outcome = Status::Errored;
    trial.error =
        fmt::format("it {} without a report of '{}', and stop.trial_time is {}", *why,
                    options_.objective.metric, exact_time(Seconds(options_.stop.trial_time)));
  }
  tell({.kind = Event::Kind::Overdue,
        .trial = id,
        .attempt = trial.attempt,
        .decision = decision,
        .now = now});
  return true;
}

/// What is to be said of an attempt whose function returned, and that its trial failed where it told
/// nothing.
void Experiment::judge_end(Trial& trial) {
  // Its last report may be without the metric, and a value of it that is not finite is one too.
  if (trial.outcome == Status::Terminated && trial.history.empty()) {
    trial.error = never_reported(trial, options_.objective.metric, options_.of_programs);
    trial.outcome = Status::Errored;
  }
  const bool lacks_objectives = !options_.objectives.empty() && trial.values.empty();
  if (trial.outcome == Status::Terminated && lacks_objectives)
    add_notice(never_whole(trial, options_));
  const bool has_cost =
      Objective{.metric = options_.stop.cost_metric}.value_in(trial.last).has_value();
  if (options_.stop.cost > 0 && progress_.cost == 0 && !has_cost && trial.t > 0) {
    add_notice(
        fmt::format("stop.cost is {}, and '{}' has added nothing to it yet; the last report of a "
                    "trial that ended has {}",
                    options_.stop.cost, options_.stop.cost_metric, names_of(trial.last)));
  }
  const auto first = needs_.first_judged_t;
  if (trial.outcome == Status::Terminated && trial.t < first) {
    add_notice(fmt::format(
        "a trial ended after {}, and none is judged before t={}: let the scheduler judge earlier",
        counted(static_cast<std::size_t>(trial.t), "report"), first));
  }
}

/// Counts a failure of a trial that was not told to end. -> what it counts as.
Fault Experiment::count(Trial& trial, const std::string& why, Fault fault, Seconds now) {
  const bool has_grown = trial.workers > 0;
  const bool is_used_up = !has_grown && trial.fruitless_restarts >= options_.system_retries;
  if (fault == Fault::System && is_used_up) fault = Fault::Trial;
  if (fault == Fault::System) {
    trial.restart_reason = why;
    // A larger gang was a favour, for which there may be no room any more.
    if (!has_grown) {
      ++trial.restarts;
      ++trial.fruitless_restarts;
    }
    trial.workers = 0;
  } else {
    trial.error = why;
    ++trial.failures;
    if (fault == Fault::Final || trial.failures > options_.max_failures) {
      finish(trial, Status::Errored, now);
      return fault;
    }
  }
  trial.status = Status::Pending;
  trial.launch = 0;
  trial.retried = true;
  again_.push_back(trial.id);
  scheduler_->on_failure(trial.id, population());
  return fault;
}

void Experiment::failed(TrialId id, const std::string& why, Fault fault, Seconds now) {
  auto& trial = known(id);
  take_back(trial);
  Event event{.kind = Event::Kind::Failed,
              .trial = id,
              .attempt = trial.attempt,
              .text = why,
              .fault = fault,
              .now = now};
  if (trial.stopping) {
    event.fault = Fault::Ended;
    conclude(trial, now);
  } else if (closed_) {
    if (fault != Fault::Final) event.fault = Fault::Ended;
    finish_with_run(trial, now);
  } else if (fault == Fault::Checkpoint) {
    trial.status = Status::Pending;
    trial.launch = 0;
    trial.retried = true;
    again_.push_front(id);
    event.decision = go_on_without_checkpoint(trial);
    const auto* exploit = std::get_if<Exploit>(&event.decision);
    add_notice(
        fmt::format("trial {} lost its checkpoint ({}); {}", id, why,
                    exploit ? describe(trial.takeovers.back(), id) : why_of(event.decision)));
  } else {
    event.fault = count(trial, why, fault, now);
  }
  const bool is_over = trial.over() && end_as_asked(id, now);
  tell(event);
  if (is_over) tell({.kind = Event::Kind::Closed, .text = why_closed_, .now = now});
}

/// The search is over, and the scheduler resumes nobody who is paused.
void Experiment::drop_paused(Seconds now) {
  for (auto& trial : trials_) {
    if (trial.status == Status::Paused && !trial.in_flight) drop(trial, now);
  }
}

void Experiment::drop(Trial& trial, Seconds now) {
  if (auto why = scheduler_->why_left(trial.id); !why.empty()) trial.reason = std::move(why);
  finish(trial, Status::Stopped, now);
  tell({.kind = Event::Kind::Dropped,
        .trial = trial.id,
        .attempt = trial.attempt,
        .text = trial.reason,
        .now = now});
}

void Experiment::shut(const std::string& why, Seconds now) {
  closed_ = true;
  why_closed_ = why;
  again_.clear();
  for (auto& trial : trials_) {
    if (trial.in_flight || trial.over()) continue;
    finish_with_run(trial, now);
  }
}

void Experiment::close(const std::string& why, Seconds now) {
  if (closed_) return;
  shut(why, now);
  tell({.kind = Event::Kind::Closed, .text = why, .now = now});
}

}  // namespace troupe::tune
