#include <troupe/tune/experiment.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace {

using Action = Decision::Action;

void check(const ExperimentOptions& options) {
  if (options.objective.metric.empty()) throw std::invalid_argument("tune: .metric has to name the metric to look at");
  if (options.max_failures < 0) {
    throw std::invalid_argument(fmt::format("tune: max_failures is {}, at least 0", options.max_failures));
  }
  if (options.system_retries < 0) {
    throw std::invalid_argument(fmt::format("tune: system_retries is {}, at least 0", options.system_retries));
  }
  if (options.stop.reports < 0) {
    throw std::invalid_argument(fmt::format("tune: stop.reports is {}, at least 0", options.stop.reports));
  }
}

std::string names_of(const Metrics& metrics) {
  std::string names;
  for (const auto& metric : metrics) names += (names.empty() ? "" : ", ") + metric.name;
  return names.empty() ? "nothing" : names;
}

std::string never_reported(const Trial& trial, const std::string& metric) {
  if (trial.t == 0) return fmt::format("it returned without a report; call ctx.report with '{}'", metric);
  return fmt::format("it never reported '{}'; its reports have {}", metric, names_of(trial.last));
}

}  // namespace

std::string_view to_string(Status status) {
  constexpr std::string_view names[] = {"pending", "running", "terminated", "stopped", "errored"};
  return names[static_cast<std::size_t>(status)];
}

Experiment::Experiment(ExperimentOptions options, std::unique_ptr<Searcher> searcher,
                       std::unique_ptr<TrialScheduler> scheduler)
    : options_{std::move(options)}, searcher_{std::move(searcher)}, scheduler_{std::move(scheduler)} {
  check(options_);
}

Trial& Experiment::known(TrialId trial) {
  if (trial >= trials_.size()) throw std::invalid_argument(fmt::format("there is no trial {}", trial));
  return trials_[trial];
}

void Experiment::tell(const Event& event) {
  if (!observer_) return;
  const bool about_trial = event.kind != Event::Kind::Closed;
  observer_(event, about_trial ? &trials_[event.trial] : nullptr);
}

Next Experiment::next(Seconds now) {
  TrialId id = trials_.size();
  if (!again_.empty()) {
    id = again_.front();
    again_.pop_front();
  } else {
    auto config = exhausted_ || closed_ ? std::nullopt : searcher_->suggest(id);
    if (!config) {
      exhausted_ = true;
      if (in_flight_ > 0) return Wait{};
      return Done{};
    }
    trials_.push_back({.id = id, .config = *std::move(config)});
  }
  auto& trial = trials_[id];
  trial.in_flight = true;
  trial.launch = ++launches_;
  ++in_flight_;
  Launch launch{id, trial.attempt(), trial.config, trial.checkpoint, trial.checkpoint_t};
  tell({.kind = Event::Kind::Launched, .trial = id, .attempt = launch.attempt, .config = trial.config, .now = now});
  return launch;
}

void Experiment::started(TrialId id, Seconds now) {
  auto& trial = known(id);
  assert(trial.in_flight);
  if (trial.attempt() == 1) trial.started = now;
  trial.status = Status::Running;
  tell({.kind = Event::Kind::Started, .trial = id, .attempt = trial.attempt(), .now = now});
}

Decision Experiment::decide(const Trial& trial, std::int64_t t, const Metrics& metrics) {
  if (closed_) return {Action::Stop, "the run ended: " + why_closed_, std::nullopt};
  const auto judged =
      scheduler_->on_report(trial.id, t, metrics);  // is told of every report, whatever comes of it here
  const auto& [metric, mode] = options_.objective;
  const auto value = options_.objective.value_in(metrics);
  if (const auto goal = options_.stop.reaches; goal && value && std::isfinite(*value)) {
    if (!options_.objective.better(*goal, *value)) {
      return {Action::Finish, fmt::format("{} {:.6g} reached {:.6g}", metric, *value, *goal), std::nullopt};
    }
  }
  if (options_.stop.reports > 0 && t >= options_.stop.reports) {
    return {Action::Finish, fmt::format("made {} reports", t), std::nullopt};
  }
  if (!value && judged.reason.empty()) {
    return {judged.action, fmt::format("the report has no '{}'; it has {}", metric, names_of(metrics)), std::nullopt};
  }
  return judged;
}

void Experiment::note(Trial& trial, const Event& report) {
  trial.t = report.t;
  trial.last = report.metrics;
  if (!report.checkpoint.empty()) {
    trial.checkpoint = report.checkpoint;
    trial.checkpoint_t = report.t;
  }
  const auto value = options_.objective.value_in(report.metrics);
  if (value && std::isfinite(*value) && (!trial.best || options_.objective.better(*value, *trial.best))) {
    trial.best = value;
    trial.best_t = report.t;
    const auto* leader = best();
    if (!leader || options_.objective.better(*value, *leader->best)) best_ = trial.id;
  }
  if (report.decision.action == Action::Continue) return;
  trial.stopping = true;
  trial.reason = report.decision.reason;
  trial.outcome = report.decision.action == Action::Stop ? Status::Stopped : Status::Terminated;
}

Decision Experiment::report(TrialId id, std::int64_t t, const Metrics& metrics, const std::string& checkpoint,
                            Seconds now) {
  auto& trial = known(id);
  if (trial.stopping || trial.over()) return {Action::Stop, trial.reason, std::nullopt};
  if (t <= trial.t && !closed_) return {};
  Event event{.kind = Event::Kind::Reported,
              .trial = id,
              .attempt = trial.attempt(),
              .t = std::max(t, trial.t),
              .metrics = metrics,
              .checkpoint = checkpoint,
              .now = now};
  event.decision = decide(trial, t, metrics);
  note(trial, event);
  const auto goal = options_.stop.reaches;
  const bool reached = goal && !closed_ && trial.best && !options_.objective.better(*goal, *trial.best);
  if (reached) shut(fmt::format("trial {}: {}", id, trial.reason), now);
  tell(event);
  if (reached) tell({.kind = Event::Kind::Closed, .text = why_closed_, .now = now});
  return event.decision;
}

void Experiment::take_back(Trial& trial) {
  assert(trial.in_flight);
  trial.in_flight = false;
  --in_flight_;
}

void Experiment::finish(Trial& trial, Status status, Seconds now) {
  trial.status = status;
  trial.stopping = false;
  trial.ended = now;
  scheduler_->on_end(trial.id);
  searcher_->on_end(trial.id, trial.best);
}

void Experiment::ended(TrialId id, Seconds now) {
  auto& trial = known(id);
  take_back(trial);
  const bool told_nothing = !trial.best && !options_.objective.value_in(trial.last);
  if (trial.outcome == Status::Terminated && told_nothing) {
    trial.error = never_reported(trial, options_.objective.metric);
    trial.outcome = Status::Errored;
  }
  finish(trial, trial.outcome, now);
  tell({.kind = Event::Kind::Ended, .trial = id, .attempt = trial.attempt(), .now = now});
}

void Experiment::failed(TrialId id, const std::string& why, Fault fault, Seconds now) {
  auto& trial = known(id);
  take_back(trial);
  const auto attempt = trial.attempt();
  if (fault == Fault::System && trial.restarts >= options_.system_retries) fault = Fault::Trial;
  if (trial.stopping) {
    finish(trial, trial.outcome, now);
  } else if (closed_) {
    trial.reason = "the run ended: " + why_closed_;
    finish(trial, Status::Stopped, now);
  } else if (fault == Fault::System) {
    trial.restart_reason = why;
    ++trial.restarts;
    trial.status = Status::Pending;
    again_.push_back(id);
  } else {
    trial.error = why;
    ++trial.failures;
    if (fault != Fault::Final && trial.failures <= options_.max_failures) {
      trial.status = Status::Pending;
      again_.push_back(id);
    } else {
      finish(trial, Status::Errored, now);
    }
  }
  tell({.kind = Event::Kind::Failed, .trial = id, .attempt = attempt, .text = why, .fault = fault, .now = now});
}

void Experiment::shut(const std::string& why, Seconds now) {
  closed_ = true;
  why_closed_ = why;
  for (const auto id : again_) {
    trials_[id].reason = "the run ended: " + why;
    finish(trials_[id], Status::Stopped, now);
  }
  again_.clear();
}

void Experiment::close(const std::string& why, Seconds now) {
  if (closed_) return;
  shut(why, now);
  tell({.kind = Event::Kind::Closed, .text = why, .now = now});
}

const Trial* Experiment::best() const { return best_ ? &trials_[*best_] : nullptr; }

void Experiment::requeue(TrialId id, Seconds now) {
  auto& trial = known(id);
  take_back(trial);
  if (trial.stopping) {
    finish(trial, trial.outcome, now);
  } else if (closed_) {
    trial.reason = "the run ended: " + why_closed_;
    finish(trial, Status::Stopped, now);
  } else {
    trial.status = Status::Pending;
    again_.push_front(id);
  }
  tell({.kind = Event::Kind::Requeued, .trial = id, .attempt = trial.attempt(), .now = now});
}

void Experiment::requeue_running(Seconds now) {
  std::vector<TrialId> running;
  for (const auto& trial : trials_) {
    if (trial.in_flight) running.push_back(trial.id);
  }
  // Each goes to the front of the queue: the last launched first, so that the launches come in the old order.
  std::ranges::sort(running, std::greater{}, [&](TrialId id) { return trials_[id].launch; });
  for (const auto id : running) requeue(id, now);
}

void Experiment::apply(const Event& event) {
  Observer observer;
  std::swap(observer, observer_);
  struct Restore {
    Observer& from;
    Observer& to;
    ~Restore() { std::swap(from, to); }
  } restore{observer, observer_};

  const bool about_gang = event.kind != Event::Kind::Launched && event.kind != Event::Kind::Closed;
  if (about_gang && !known(event.trial).in_flight) {
    throw std::invalid_argument(fmt::format("trial {} is in no gang at this place of the journal", event.trial));
  }
  switch (event.kind) {
    case Event::Kind::Launched: {
      const auto again = next(event.now);
      const auto* launch = std::get_if<Launch>(&again);
      if (launch && launch->trial == event.trial && launch->attempt == event.attempt &&
          launch->config == event.config) {
        return;
      }
      throw std::invalid_argument(fmt::format("the journal launched trial {} (attempt {}) with {}; this search {}",
                                              event.trial, event.attempt, to_string(event.config),
                                              launch ? "has " + to_string(launch->config) : "launches nothing"));
    }
    case Event::Kind::Started:
      return started(event.trial, event.now);
    case Event::Kind::Reported: {
      const auto decision = report(event.trial, event.t, event.metrics, event.checkpoint, event.now);
      if (decision == event.decision) return;
      throw std::invalid_argument(fmt::format("trial {}, t={}: the journal's decision was '{}', this search's is '{}'",
                                              event.trial, event.t, event.decision.reason, decision.reason));
    }
    case Event::Kind::Ended:
      return ended(event.trial, event.now);
    case Event::Kind::Failed:
      return failed(event.trial, event.text, event.fault, event.now);
    case Event::Kind::Requeued:
      return requeue(event.trial, event.now);
    case Event::Kind::Closed:
      return close(event.text, event.now);
  }
}

std::string Experiment::save() const {
  auto trials = Json::array();
  for (const auto& trial : trials_) trials.push_back(to_json(trial));
  return dump({{"trials", trials},
               {"again", std::vector<TrialId>(again_.begin(), again_.end())},
               {"in_flight", in_flight_},
               {"best", best_ ? Json(*best_) : Json()},
               {"closed", closed_ ? Json(why_closed_) : Json()},
               {"searcher", parse(searcher_->save(), "a searcher's state")},
               {"scheduler", parse(scheduler_->save(), "a scheduler's state")}});
}

}  // namespace troupe::tune
