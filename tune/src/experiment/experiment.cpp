#include <troupe/tune/experiment.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "experiment/stopping.hpp"
#include "objectives/best.hpp"
#include "objectives/front.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

void check(const ExperimentOptions& options) {
  if (options.objective.metric.empty())
    throw std::invalid_argument(
        "tune: .metric is empty: name what the function reports and the search goes by, as in "
        ".metric = \"loss\"");
  const auto& all = options.objectives;
  if (!all.empty() && (all.size() < 2 || all.front() != options.objective))
    throw std::invalid_argument("tune: .objectives are several or none, the objective the first");
  if (options.max_failures < 0) {
    throw std::invalid_argument(
        fmt::format("tune: max_failures is {}, at least 0", options.max_failures));
  }
  if (options.system_retries < 0) {
    throw std::invalid_argument(
        fmt::format("tune: system_retries is {}, at least 0", options.system_retries));
  }
  check(options.stop);
}

}  // namespace

std::string_view to_string(Status status) {
  constexpr std::array<std::string_view, kStatuses> names{"pending", "running", "terminated",
                                                          "stopped", "errored", "paused"};
  return names[static_cast<std::size_t>(status)];
}

std::string_view ending_of(const Trial& trial) {
  if (trial.is_unfinished()) return "unfinished";
  return trial.is_unstarted() ? "unstarted" : to_string(trial.status);
}

Experiment::Experiment(ExperimentOptions options, std::unique_ptr<Searcher> searcher,
                       std::unique_ptr<TrialScheduler> scheduler)
    : options_{std::move(options)},
      searcher_{std::move(searcher)},
      scheduler_{std::move(scheduler)},
      needs_{scheduler_->needs()} {
  check(options_);
}

Trial& Experiment::known(TrialId trial) {
  if (trial >= trials_.size())
    throw std::invalid_argument(fmt::format("there is no trial {}", trial));
  return trials_[trial];
}

void Experiment::tell(const Event& event) {
  if (!observer_) return;
  const bool about_trial = event.kind != Event::Kind::Closed;
  observer_(event, about_trial ? &trials_[event.trial] : nullptr);
}

Population Experiment::population() const {
  if (exhausted_ || closed_) return {trials_, 0};
  const auto size = searcher_->size();
  return {trials_, size ? *size - std::min<std::uint64_t>(*size, trials_.size()) : 1};
}

// ---- launches -----------------------------------------------------------------------------------

TrialId Experiment::begin(Configuration config) {
  const TrialId id = trials_.size();
  trials_.push_back({.id = id, .config = std::move(config)});
  return id;
}

/// Who is to be launched next; none for now. `resumed`: of one that was paused, why, and with what.
std::optional<TrialId> Experiment::chosen(Decision& resumed) {
  if (!again_.empty()) {
    const auto id = again_.front();
    again_.pop_front();
    return id;
  }
  if (closed_) return std::nullopt;
  const auto turn = scheduler_->on_place(population());
  if (const auto* resume = std::get_if<Resume>(&turn)) {
    const auto& trial = known(resume->trial);
    if (trial.status != Status::Paused) {
      throw std::logic_error(fmt::format("the scheduler resumes trial {}, which is {}", trial.id,
                                         to_string(trial.status)));
    }
    if (resume->exploit) {
      resumed = *resume->exploit;
    } else {
      resumed = GoOn{resume->why, resume->rung, {}};
    }
    if (resume->workers > 0) known(resume->trial).workers = resume->workers;
    return trial.id;
  }
  const bool is_over = std::holds_alternative<Over>(turn);
  const bool is_idle = in_flight_ == 0 && !is_over;
  if (std::holds_alternative<Begin>(turn) || is_idle) {
    auto suggestion = exhausted_ ? Suggestion(NoMore{}) : searcher_->suggest(trials_.size());
    if (auto* config = std::get_if<Configuration>(&suggestion)) return begin(std::move(*config));
    if (std::holds_alternative<NoMore>(suggestion)) {
      const bool was_known = std::exchange(exhausted_, true);
      if (!was_known) return chosen(resumed);  // the scheduler knows now that nothing is to come
    }
  }
  const auto* behind = is_idle ? furthest_behind(trials_) : nullptr;
  if (behind) {
    resumed = GoOn{.why = "nothing else runs; " + why_furthest_behind(*behind)};
    return behind->id;
  }
  if (is_idle && !exhausted_) {
    throw std::logic_error(
        fmt::format("tune: the searcher answers Later for trial {}, and no trial runs or is paused "
                    "for whose end it could wait; it has to suggest a configuration, or NoMore",
                    trials_.size()));
  }
  return std::nullopt;
}

Launch Experiment::launch(Trial& trial, const Decision& resumed, Seconds now) {
  if (const auto* exploit = std::get_if<Exploit>(&resumed)) take_over(trial, *exploit);
  trial.outcome = Status::Terminated;
  trial.reason.clear();
  if (trial.launch == 0) trial.launch = ++launches_;
  trial.launched_from = trial.checkpoint;
  trial.repeating = trial.checkpoint_t < trial.t;
  ++trial.attempt;
  const bool reconfigured = !trial.checkpoint.empty() && !trial.takeovers.empty() &&
                            trial.takeovers.back().checkpoint == trial.checkpoint;
  const Launch launch{.trial = trial.id,
                      .attempt = trial.attempt,
                      .config = trial.config,
                      .checkpoint = trial.checkpoint,
                      .after_t = trial.checkpoint_t,
                      .takeovers = trial.takeovers.size(),
                      .reconfigured = reconfigured,
                      .workers = trial.workers};
  const Event event{.kind = Event::Kind::Launched,
                    .trial = trial.id,
                    .attempt = trial.attempt,
                    .t = launch.after_t,
                    .takeovers = launch.takeovers,
                    .workers = launch.workers,
                    .config = trial.config,
                    .checkpoint = launch.checkpoint,
                    .decision = resumed,
                    .now = now};
  tell(event);
  return launch;
}

Next Experiment::next(Seconds now) {
  Decision resumed;
  const auto id = chosen(resumed);
  if (!id) {
    if (in_flight_ > 0) return Wait{};
    drop_paused(now);
    return Done{};
  }
  auto& trial = trials_[*id];
  if (trial.status == Status::Paused) trial.launch = 0;
  trial.status = Status::Pending;
  trial.in_flight = true;
  ++in_flight_;
  return launch(trial, resumed, now);
}

Launch Experiment::relaunch(TrialId id, Seconds now) {
  auto& trial = known(id);
  if (!trial.replaced)
    throw std::invalid_argument(fmt::format("trial {} was not told to take over another", id));
  trial.replaced = false;
  trial.launch = 0;
  return launch(trial, Decision{}, now);
}

void Experiment::started(TrialId id, Seconds now, std::vector<Place> places) {
  auto& trial = known(id);
  assert(trial.in_flight);
  if (!std::exchange(trial.has_started, true)) trial.started = now;
  trial.attempt_began = now;
  trial.status = Status::Running;
  tell({.kind = Event::Kind::Started,
        .trial = id,
        .attempt = trial.attempt,
        .places = std::move(places),
        .now = now});
}

// ---- reports ------------------------------------------------------------------------------------

Stop Experiment::run_ended() const { return {std::string(kRunEnded) + why_closed_, std::nullopt}; }

Decision Experiment::decide(const Trial& trial, Seconds now) {
  if (closed_) return run_ended();
  // Both are told of every report, whatever comes of it here.
  const auto& [metric, mode] = options_.objective;
  const auto value = options_.objective.value_in(trial.last);
  if (value) searcher_->on_report(trial.id, trial.t, *value);
  auto judged = scheduler_->on_report(trial, population());
  if (const auto goal = options_.stop.reaches; goal && value && std::isfinite(*value)) {
    if (!options_.objective.better(*goal, *value)) {
      return Finish{fmt::format("{} {:.6g} reached {:.6g}", metric, *value, *goal)};
    }
  }
  if (auto why = why_trial_ends(options_.stop, options_.objective, trial, now))
    return Finish{std::move(*why)};
  auto* go_on = std::get_if<GoOn>(&judged);
  if (!value && go_on && go_on->why.empty()) {
    go_on->why = fmt::format("the report has no '{}'; it has {}", metric, names_of(trial.last));
  }
  return judged;
}

void Experiment::note(Trial& trial, const Event& report) {
  trial.t = report.t;
  trial.fruitless_restarts = 0;
  trial.retried = false;
  trial.repeating = false;
  trial.last = report.metrics;
  note_checkpoint(trial, report);
  const auto violation = violation_in(options_.constraints, report.metrics);
  if (auto values = values_in(options_.objectives, report.metrics); violation && !values.empty()) {
    trial.values = std::move(values);
    trial.violation = *violation;
    trial.values_t = report.t;
    trial.values_takeovers = trial.takeovers.size();
  }
  ++progress_.reports;
  const auto cost = Objective{.metric = options_.stop.cost_metric}.value_in(report.metrics);
  if (cost && std::isfinite(*cost)) progress_.cost += *cost;
  const auto value = options_.objective.value_in(report.metrics);
  if (!value) return;
  trial.history.push_back({report.t, *value});
  if (!std::isfinite(*value) || (trial.best && !options_.objective.better(*value, *trial.best)))
    return;
  trial.best = value;
  trial.best_t = report.t;
  trial.ended_before_best = progress_.ended;
  trial.best_takeovers = trial.takeovers.size();
  trial.best_checkpoint = trial.checkpoint;
  trial.best_checkpoint_t = trial.checkpoint_t;
  const auto* leader = best();
  const bool is_better =
      !leader || leader == &trial || options_.objective.better(*value, *leader->best);
  if (is_better) progress_.no_better = 0;
  if (is_better || (*value == *leader->best && trial.id < leader->id)) best_ = trial.id;
}

/// After a trial with the best value failed. What ended counts from the first report of the value that
/// is the best one now, by whichever trial.
void Experiment::replace_best() {
  best_ = best_of(trials_, options_.objective);
  const auto* leader = best();
  auto before = leader ? leader->ended_before_best : 0;
  for (const auto& trial : trials_) {
    if (leader && is_candidate(trial) && *trial.best == *leader->best)
      before = std::min(before, trial.ended_before_best);
  }
  progress_.no_better = progress_.ended - before;
}

bool Experiment::end_as_asked(TrialId id, Seconds now) {
  if (closed_) return false;
  auto why = reached_goal() ? std::optional(fmt::format("trial {}: {}", id, trials_[id].reason))
                            : why_run_ends(options_.stop, progress_);
  if (!why) return false;
  ended_as_asked_ = true;
  shut(*why, now);
  return true;
}

void Experiment::add_notice(std::string notice) {
  if (notices_.size() == kMostNotices || std::ranges::count(notices_, notice) > 0) return;
  notices_.push_back(std::move(notice));
}

void Experiment::act_on(Trial& trial, const Decision& decision) {
  if (const auto& notice = notice_of(decision); !notice.empty()) add_notice(notice);
  if (std::holds_alternative<GoOn>(decision)) return;
  trial.reason = why_of(decision);
  if (const auto* exploit = std::get_if<Exploit>(&decision)) {
    take_over(trial, *exploit);
    trial.replaced = !exploit->in_turn;
    if (trial.replaced) return;
  }
  trial.stopping = true;
  trial.outcome = std::holds_alternative<Stop>(decision)     ? Status::Stopped
                  : std::holds_alternative<Finish>(decision) ? Status::Terminated
                                                             : Status::Paused;
}

Decision Experiment::report(TrialId id, std::int64_t t, const Metrics& metrics,
                            const std::string& checkpoint, Seconds now) {
  auto& trial = known(id);
  if (trial.stopping || trial.replaced || trial.over()) return Stop{trial.reason, std::nullopt};
  if (t <= trial.t) return closed_ ? Decision(run_ended()) : GoOn{};
  Event event{.kind = Event::Kind::Reported,
              .trial = id,
              .attempt = trial.attempt,
              .t = t,
              .config = trial.config,
              .metrics = metrics,
              .checkpoint = checkpoint,
              .now = now};
  note(trial, event);
  event.decision = decide(trial, now);
  act_on(trial, event.decision);
  trial.ended_with_run = closed_;
  const bool is_over = end_as_asked(id, now);
  tell(event);
  if (is_over) tell({.kind = Event::Kind::Closed, .text = why_closed_, .now = now});
  return event.decision;
}

// ---- questions ----------------------------------------------------------------------------------

bool Experiment::reached_goal() const {
  const auto goal = options_.stop.reaches;
  return goal && best_ && !options_.objective.better(*goal, *trials_[*best_].best);
}

const Trial* Experiment::best() const { return best_ ? &trials_[*best_] : nullptr; }

}  // namespace troupe::tune
