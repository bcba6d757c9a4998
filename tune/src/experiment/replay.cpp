#include <algorithm>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/tune/experiment.hpp>

// How an experiment takes up the events of a journal.
namespace troupe::tune {

void Experiment::requeue(TrialId id, Seconds now) {
  auto& trial = known(id);
  const bool was_replaced = trial.replaced;
  take_back(trial);
  if (trial.stopping) {
    conclude(trial, now);
  } else if (closed_) {
    finish_with_run(trial, now);
  } else {
    trial.status = Status::Pending;
    // The same one is launched again, with its numbers; or the one that was to begin in its place.
    if (was_replaced) {
      trial.launch = 0;
    } else {
      --trial.attempt;
    }
    again_.push_front(id);
  }
  const bool is_over = trial.over() && end_as_asked(id, now);
  tell({.kind = Event::Kind::Requeued, .trial = id, .attempt = trial.attempt, .now = now});
  if (is_over) tell({.kind = Event::Kind::Closed, .text = why_closed_, .now = now});
}

void Experiment::requeue_running(Seconds now) {
  std::vector<TrialId> running;
  for (const auto& trial : trials_) {
    if (trial.in_flight) running.push_back(trial.id);
  }
  // Each goes to the front of the queue: the last one first, so that those that had places come
  // before those that waited for one, both in the order of their launches.
  std::ranges::sort(running, std::greater{}, [&](TrialId id) {
    const auto& trial = trials_[id];
    return std::pair(trial.status != Status::Running, trial.launch);
  });
  for (const auto id : running) requeue(id, now);
}

namespace {

std::string launch_text(TrialId trial, int attempt, std::int64_t after_t, std::size_t takeovers,
                        int workers, const std::string& checkpoint, const Configuration& config,
                        const Decision& resumed) {
  auto text = fmt::format("trial {} (attempt {}, after t={}", trial, attempt, after_t);
  if (takeovers > 0) text += fmt::format(", takeover {}", takeovers);
  if (workers > 0) text += fmt::format(", {} workers", workers);
  if (!checkpoint.empty()) text += ", from " + checkpoint;
  text += ") with " + to_string(config);
  return why_of(resumed).empty() ? text : text + ", as " + why_of(resumed);
}

}  // namespace

void Experiment::apply_launch(const Event& event) {
  const bool is_replaced = event.trial < trials_.size() && trials_[event.trial].replaced;
  Decision mine;
  observer_ = [&](const Event& own, const Trial*) { mine = own.decision; };
  std::optional<Launch> launch;
  if (is_replaced) {
    launch = relaunch(event.trial, event.now);
  } else if (auto again = next(event.now); std::holds_alternative<Launch>(again)) {
    launch = std::get<Launch>(std::move(again));
  }
  if (launch && launch->trial == event.trial && launch->attempt == event.attempt &&
      launch->config == event.config && launch->checkpoint == event.checkpoint &&
      launch->after_t == event.t && launch->takeovers == event.takeovers &&
      launch->workers == event.workers && mine == event.decision) {
    return;
  }
  throw std::invalid_argument(fmt::format(
      "the journal launched {}; this search launches {}",
      launch_text(event.trial, event.attempt, event.t, event.takeovers, event.workers,
                  event.checkpoint, event.config, event.decision),
      launch ? launch_text(launch->trial, launch->attempt, launch->after_t, launch->takeovers,
                           launch->workers, launch->checkpoint, launch->config, mine)
             : "nothing"));
}

void Experiment::apply_report(const Event& event) {
  const auto decision = report(event.trial, event.t, event.metrics, event.checkpoint, event.now);
  if (decision == event.decision) return;
  throw std::invalid_argument(
      fmt::format("trial {}, t={}: the journal's decision was {} '{}', this search's is {} '{}'",
                  event.trial, event.t, name_of(event.decision), why_of(event.decision),
                  name_of(decision), why_of(decision)));
}

void Experiment::apply_overdue(const Event& event) {
  Decision mine;
  observer_ = [&](const Event& own, const Trial*) { mine = own.decision; };
  if (end_overdue(event.trial, event.now) && mine == event.decision) return;
  throw std::invalid_argument(
      fmt::format("the journal ends trial {}, which '{}', and this search does not", event.trial,
                  why_of(event.decision)));
}

void Experiment::apply_failure(const Event& event) {
  Decision mine;
  observer_ = [&](const Event& own, const Trial*) { mine = own.decision; };
  failed(event.trial, event.text, event.fault, event.now);
  if (mine == event.decision) return;
  throw std::invalid_argument(
      fmt::format("trial {}, whose checkpoint is gone: in the journal {}, in this search {}",
                  event.trial, why_of(event.decision), why_of(mine)));
}

void Experiment::apply_drop(const Event& event) {
  auto& trial = known(event.trial);
  if (trial.status != Status::Paused || trial.in_flight) {
    throw std::invalid_argument(fmt::format("the journal gives up trial {}, which is {} here",
                                            trial.id, to_string(trial.status)));
  }
  drop(trial, event.now);
}

void Experiment::apply(const Event& event) {
  Observer observer;
  std::swap(observer, observer_);
  struct Restore {
    Observer& from;
    Observer& to;
    ~Restore() { std::swap(from, to); }
  } restore{observer, observer_};

  const bool about_gang = event.kind != Event::Kind::Launched &&
                          event.kind != Event::Kind::Closed && event.kind != Event::Kind::Dropped;
  if (about_gang && !known(event.trial).in_flight) {
    throw std::invalid_argument(
        fmt::format("trial {} is in no gang at this place of the journal", event.trial));
  }
  switch (event.kind) {
    case Event::Kind::Launched:
      return apply_launch(event);
    case Event::Kind::Started:
      return started(event.trial, event.now);
    case Event::Kind::Reported:
      return apply_report(event);
    case Event::Kind::Overdue:
      return apply_overdue(event);
    case Event::Kind::Ended:
      return ended(event.trial, event.now);
    case Event::Kind::Failed:
      return apply_failure(event);
    case Event::Kind::Requeued:
      return requeue(event.trial, event.now);
    case Event::Kind::Dropped:
      return apply_drop(event);
    case Event::Kind::Closed:
      return close(event.text, event.now);
  }
}

}  // namespace troupe::tune
