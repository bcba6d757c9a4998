#include "run/drive.hpp"

#include <map>
#include <set>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr Seconds kTick{0.25};
constexpr Seconds kPatienceToGrow{30};

class Driver {
 public:
  Driver(Experiment& experiment, Launcher& launcher, const DriveLimits& limits,
         const DriveHooks& hooks)
      : experiment_{experiment}, launcher_{launcher}, limits_{limits}, hooks_{hooks} {}

  void run() {
    while (true) {
      if (!launch_if_wanted()) break;
      const auto event = launcher_.wait(kTick);
      // An interrupt that ended gangs too is the reason for their end, not a fault of theirs.
      check_time();
      if (event) take(*event);
      if (hooks_.tick) hooks_.tick(launcher_.now());
    }
    if (impossible_)
      raise({.kind = Failure::Kind::Impossible, .message = *impossible_, .type = {}, .where = {}});
  }

 private:
  /// False once all is done.
  bool launch_if_wanted() {
    const bool full =
        limits_.max_concurrent > 0 && experiment_.in_flight() >= limits_.max_concurrent;
    if (unplaced_ || full) return true;
    const auto next = experiment_.next(launcher_.now());
    if (std::holds_alternative<Done>(next)) return false;
    if (const auto* launch = std::get_if<Launch>(&next)) {
      unplaced_ = launch->trial;
      asked_at_ = launcher_.now();
      after_t_[launch->trial] = launch->after_t;
      launcher_.launch(*launch);
    }
    return true;
  }

  void check_time() {
    const auto now = launcher_.now();
    if (const auto why = hooks_.interrupted ? hooks_.interrupted() : std::nullopt;
        why && !ended_all_) {
      experiment_.close(*why, now);
      end_all();
    }
    if (limits_.time_budget.count() > 0 && now >= limits_.time_budget) {
      experiment_.close(
          fmt::format("the time budget of {} is used up", short_time(limits_.time_budget)), now);
    }
    end_deaf_trials(now);
    give_up_growth(now);
    if (!experiment_.closed()) return;
    if (!closed_at_) {
      closed_at_ = now;
      if (unplaced_) launcher_.end(*unplaced_);
    }
    if (now - *closed_at_ >= limits_.stop_grace) end_all();
  }

  /// Those that were told to stop and go on.
  void end_deaf_trials(Seconds now) {
    for (auto& [trial, since] : told_to_stop_) {
      if (now < since || now - since < limits_.stop_grace) continue;
      launcher_.end(trial);
      since = Seconds::max();
      if (replaced_.contains(trial)) deaf_.insert(trial);
    }
  }

  /// There may be no room for a gang that was to grow: its trial has been training, and goes on.
  void give_up_growth(Seconds now) {
    if (!unplaced_ || no_room_ || now - asked_at_ < kPatienceToGrow) return;
    if (experiment_.trials()[*unplaced_].workers == 0) return;
    no_room_ = unplaced_;
    launcher_.end(*unplaced_);
  }

  void end_all() {
    if (ended_all_) return;
    ended_all_ = true;
    for (const auto& trial : experiment_.trials()) {
      if (trial.in_flight) launcher_.end(trial.id);
    }
  }

  void take(const GangEvent& event) {
    const auto now = launcher_.now();
    const bool is_placed_or_over = event.kind == GangEvent::Kind::Placed || is_last(event);
    if (unplaced_ == event.trial && is_placed_or_over) unplaced_.reset();
    switch (event.kind) {
      case GangEvent::Kind::Notice:
        if (hooks_.notice) hooks_.notice(event.text);
        return;
      case GangEvent::Kind::Placed:
        if (replaced_.erase(event.trial) > 0) told_to_stop_.erase(event.trial);
        return experiment_.started(event.trial, now);
      case GangEvent::Kind::Reported:
        return judge(event, now);
      case GangEvent::Kind::Ended:
        forget(event.trial);
        return experiment_.ended(event.trial, now);
      case GangEvent::Kind::Failed:
        return fail(event, now);
      case GangEvent::Kind::ClusterEnded:
        experiment_.close(event.text, now);
        return end_all();
      case GangEvent::Kind::Impossible:
        if (experiment_.trials()[event.trial].workers > 0) {
          forget(event.trial);
          return experiment_.failed(event.trial, event.text, Fault::System, now);
        }
        if (limits_.sizes_differ) {
          forget(event.trial);
          return experiment_.failed(event.trial, event.text, Fault::Final, now);
        }
        impossible_ = event.text;
        experiment_.close(event.text, now);
        experiment_.failed(event.trial, event.text, Fault::Final, now);
        return end_all();
    }
  }

  void fail(const GangEvent& event, Seconds now) {
    const bool had_no_room = no_room_ == event.trial;
    if (had_no_room) no_room_.reset();
    if (had_no_room && !experiment_.closed()) {
      forget(event.trial);
      const auto why = fmt::format("there was no room for its larger gang within {}",
                                   short_time(kPatienceToGrow));
      return experiment_.failed(event.trial, why, Fault::System, now);
    }
    const bool was_deaf = deaf_.contains(event.trial);
    forget(event.trial);
    if (!was_deaf) return experiment_.failed(event.trial, event.text, event.fault, now);
    const auto why = fmt::format(
        "its attempt that was to end had not, {} after it was told to; its processes were ended",
        short_time(limits_.stop_grace));
    experiment_.failed(event.trial, why, Fault::System, now);
  }

  void forget(TrialId trial) {
    after_t_.erase(trial);
    told_to_stop_.erase(trial);
    replaced_.erase(trial);
    deaf_.erase(trial);
  }

  void judge(const GangEvent& event, Seconds now) {
    const auto t = after_t_[event.trial] + event.k;
    const auto decision = experiment_.report(event.trial, t, event.metrics, event.checkpoint, now);
    const bool goes_on = std::holds_alternative<GoOn>(decision);
    if (!goes_on) told_to_stop_.try_emplace(event.trial, now);
    if (const auto* exploit = std::get_if<Exploit>(&decision); exploit && !exploit->in_turn) {
      const auto launch = experiment_.relaunch(event.trial, now);
      after_t_[event.trial] = launch.after_t;
      replaced_.insert(event.trial);
      return launcher_.replace(launch, event.k);
    }
    launcher_.answer(event.trial, event.k, goes_on ? Verdict::Continue : Verdict::Stop);
  }

  Experiment& experiment_;
  Launcher& launcher_;
  const DriveLimits& limits_;
  const DriveHooks& hooks_;
  std::optional<TrialId> unplaced_;
  Seconds asked_at_{0};             // for it
  std::optional<TrialId> no_room_;  // was told to end, as its larger gang had not been placed
  std::map<TrialId, std::int64_t> after_t_;
  std::map<TrialId, Seconds> told_to_stop_;
  // An attempt that is replaced: told to stop, replaced_ -> Placed of the next one, neither; or,
  // once stop_grace is over, deaf_ -> Failed of the next one, which is the system's fault.
  std::set<TrialId> replaced_;
  std::set<TrialId> deaf_;
  std::optional<Seconds> closed_at_;
  bool ended_all_ = false;
  std::optional<std::string> impossible_;
};

}  // namespace

void drive(Experiment& experiment, Launcher& launcher, const DriveLimits& limits,
           const DriveHooks& hooks) {
  Driver(experiment, launcher, limits, hooks).run();
}

}  // namespace troupe::tune
