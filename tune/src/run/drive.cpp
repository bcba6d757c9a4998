#include "run/drive.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include <troupe/tune/detail/program_words.hpp>

#include "run/silence.hpp"
#include "text/cause.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr Seconds kTick{0.25};
constexpr Seconds kPatienceToGrow{30};
/// Until a place that a gang has left, and none has taken, went with its node or to another job.
constexpr Seconds kPlaceIsFree{1};
/// Trials that fail alike before anything was reported, until all others would too.
constexpr std::size_t kAlike = 5;
constexpr Seconds kSilence{2};  // until people are told what is waited for

std::string in_brackets(const std::string& text) {
  return text.empty() ? text : fmt::format(" ({})", text);
}

class Driver {
 public:
  Driver(Experiment& experiment, Launcher& launcher, const DriveLimits& limits,
         const DriveHooks& hooks)
      : experiment_{experiment},
        launcher_{launcher},
        limits_{limits},
        hooks_{hooks},
        silence_{limits.notice_silence} {
    // What earlier drivers have seen counts as well.
    is_hopeful_ = std::ranges::any_of(experiment_.trials(), [](const Trial& trial) {
      return !trial.history.empty() || trial.status == Status::Terminated;
    });
  }

  bool run() {
    bool goes_on = true;
    while (goes_on) {
      try {
        goes_on = step();
        if (const auto thrown = experiment_.take_thrown()) std::rethrow_exception(thrown);
      } catch (const Error&) {
        throw;  // of the cluster
      } catch (const std::exception& thrown) {
        end_after(thrown);
      }
    }
    if (thrown_) std::rethrow_exception(thrown_);
    if (impossible_)
      raise({.kind = Failure::Kind::Impossible, .message = *impossible_, .type = {}, .where = {}});
    return has_cluster_ended_;
  }

 private:
  /// False once all is done.
  bool step() {
    if (!launch_if_wanted()) return false;
    auto event = launcher_.wait(kTick);
    // An interrupt that ended gangs too is the reason for their end, not a fault of theirs.
    check_time();
    for (; event; event = launcher_.at_hand()) take(*event);
    send_answers();
    look_after_silent_trials(launcher_.now());
    if (hooks_.tick) hooks_.tick(launcher_.now());
    return true;
  }

  /// What a searcher or a function of the user's own has thrown ends the run as an interrupt does, and
  /// is thrown again then. A second one is thrown at once.
  void end_after(const std::exception& thrown) {
    if (thrown_) throw;
    thrown_ = std::current_exception();
    const auto now = launcher_.now();
    experiment_.close(thrown.what(), now);
    tell_all_to_end(now);
  }

  struct Answer {
    TrialId trial = 0;
    std::int64_t k = 0;
    Verdict verdict = Verdict::Continue;
  };

  /// One request more than there are places that are known to be free. False once all is done.
  bool launch_if_wanted() {
    while (unplaced_.size() <= free_places_) {
      const bool full =
          limits_.max_concurrent > 0 && experiment_.in_flight() >= limits_.max_concurrent;
      if (full) return true;
      const auto next = experiment_.next(launcher_.now());
      if (std::holds_alternative<Done>(next)) return false;
      const auto* launch = std::get_if<Launch>(&next);
      if (!launch) return true;
      unplaced_[launch->trial] = launcher_.now();
      after_t_[launch->trial] = launch->after_t;
      keep();
      launcher_.launch(*launch);
      most_in_flight_ = std::max(most_in_flight_, experiment_.in_flight());
    }
    return true;
  }

  void check_time() {
    const auto now = launcher_.now();
    if (const auto why = hooks_.interrupted ? hooks_.interrupted() : std::nullopt;
        why && !ended_all_at_) {
      experiment_.close(*why, now);
      tell_all_to_end(now);
    }
    if (limits_.time_budget.count() > 0 && now >= limits_.time_budget) {
      experiment_.close(
          fmt::format("the time budget of {} is used up", exact_time(limits_.time_budget)), now);
    }
    if (now - freed_at_ >= kPlaceIsFree) free_places_ = 0;
    end_deaf_trials(now);
    give_up_growth(now);
    say_what_is_awaited(now);
    if (!experiment_.closed()) return;
    if (!closed_at_) {
      closed_at_ = now;
      for (const auto& [trial, asked_at] : unplaced_) launcher_.end(trial);
    }
    if (now - *closed_at_ >= limits_.stop_grace) tell_all_to_end(now);
    if (told_all_at_ && now - *told_all_at_ >= limits_.end_grace) end_all();
  }

  /// Those that were told to stop and go on. Once all are told to end, that wait is the last.
  void end_deaf_trials(Seconds now) {
    if (told_all_at_) return;
    for (auto& [trial, since] : told_to_stop_) {
      if (now < since || now - since < limits_.stop_grace) continue;
      launcher_.end(trial);
      since = Seconds::max();
      if (replaced_.contains(trial)) deaf_.insert(trial);
    }
  }

  void look_after_silent_trials(Seconds now) {
    if (now - looked_at_silent_ < kTick) return;
    looked_at_silent_ = now;
    end_overdue_trials(now);
    say_who_is_silent(now);
  }

  /// Those whose time is over, and which do not report, where they would be told so.
  void end_overdue_trials(Seconds now) {
    const bool has_limit = experiment_.options().stop.trial_time.count() > 0;
    if (!has_limit || !launcher_.ends_silent()) return;
    std::vector<TrialId> overdue;
    for (const auto& [trial, after_t] : after_t_) {
      if (!told_to_stop_.contains(trial) && experiment_.end_overdue(trial, now))
        overdue.push_back(trial);
    }
    if (overdue.empty()) return;
    keep();
    for (const auto trial : overdue) {
      silence_.over(trial);
      told_to_stop_[trial] = now;
      launcher_.tell_to_end(trial);
    }
  }

  /// Each attempt that has not reported for long, once.
  void say_who_is_silent(Seconds now) {
    if (!hooks_.notice) return;
    for (const auto& [trial, waited, longest] : silence_.due(now)) {
      const auto before =
          longest ? fmt::format("before, a report took {} at most", short_time(*longest))
                  : std::string("no trial has reported yet");
      const auto what = fmt::format("trial {} has not reported for {} ({}), and keeps its place{}",
                                    trial, short_time(waited), before, limits_.for_silent_trials);
      if (!launcher_.tell_where(trial, what)) hooks_.notice(what);
    }
  }

  /// Once, where all that is under way was told to end and takes its time.
  void say_what_is_awaited(Seconds now) {
    const auto awaited = experiment_.in_flight();
    if (ended_all_at_) return say_what_ends_by_itself(awaited, now - *ended_all_at_);
    if (told_all_at_) return say_all_are_awaited(awaited, now - *told_all_at_);
    const bool is_last_wait = closed_at_ || told_to_stop_.size() == awaited;
    if (!hooks_.waits || has_said_wait_ || ended_all_at_ || awaited == 0 || !is_last_wait) return;
    auto since = closed_at_.value_or(Seconds(0));
    for (const auto& [trial, told] : told_to_stop_) {
      if (!closed_at_ && told <= now) since = std::max(since, told);
    }
    if (now - since < kSilence || now - since >= limits_.stop_grace) return;
    has_said_wait_ = true;
    const bool is_one = awaited == 1;
    hooks_.waits(
        fmt::format("{} told to end {} ago, and {} time for it: {}{} after that the gang is ended",
                    is_one ? "1 trial was" : fmt::format("{} trials were", awaited),
                    short_time(now - since), is_one ? "takes its" : "take their",
                    short_time(limits_.stop_grace), in_brackets(limits_.stop_grace_text)));
  }

  /// Once, of trials that were told to end with the run.
  void say_all_are_awaited(std::size_t awaited, Seconds waited) {
    const bool is_to_be_said =
        hooks_.waits && !has_said_last_wait_ && !ended_all_at_ && awaited > 0;
    if (!is_to_be_said || waited < kSilence || waited >= limits_.end_grace) return;
    has_said_last_wait_ = true;
    const bool by_signal = hooks_.interrupted && hooks_.interrupted();
    hooks_.waits(fmt::format(
        "{} told to end with the run {} ago: {}{} after that {} killed{}",
        awaited == 1 ? "1 trial was" : fmt::format("{} trials were", awaited), short_time(waited),
        short_time(limits_.end_grace), in_brackets(limits_.end_grace_text),
        awaited == 1 ? "it is" : "they are", by_signal ? "; a second signal does it now" : ""));
  }

  /// Once, of a trial that runs in this process, and neither reports nor returns.
  void say_what_ends_by_itself(std::size_t awaited, Seconds waited) {
    const bool is_to_be_said = hooks_.waits && !has_said_last_wait_ && awaited > 0;
    if (!is_to_be_said || launcher_.ends_silent() || waited < kSilence) return;
    has_said_last_wait_ = true;
    hooks_.waits(
        "the trial runs in this process, where nothing else can end it: the search waits for its "
        "next report, or its end; a signal (Ctrl-C) ends the program now");
  }

  /// There may be no room for a gang that was to grow: its trial has been training, and goes on.
  void give_up_growth(Seconds now) {
    for (const auto& [trial, asked_at] : unplaced_) {
      if (now - asked_at < kPatienceToGrow || experiment_.trials()[trial].workers == 0) continue;
      if (no_room_.insert(trial).second) launcher_.end(trial);
    }
  }

  /// What does not run yet is ended at once.
  void tell_all_to_end(Seconds now) {
    if (limits_.end_grace.count() <= 0) return end_all();
    if (told_all_at_ || ended_all_at_) return;
    told_all_at_ = now;
    for (const auto& trial : experiment_.trials()) {
      if (trial.in_flight) launcher_.tell_to_end(trial.id);
    }
  }

  void end_all() {
    if (ended_all_at_) return;
    ended_all_at_ = launcher_.now();
    for (const auto& trial : experiment_.trials()) {
      if (trial.in_flight) launcher_.end(trial.id);
    }
  }

  /// -> whether its gang was still waited for.
  bool count_places(const GangEvent& event, Seconds now) {
    const bool is_placed = event.kind == GangEvent::Kind::Placed;
    if (!is_placed && !is_last(event)) return false;
    const bool was_unplaced = unplaced_.erase(event.trial) > 0;
    if (is_placed && was_unplaced && free_places_ > 0) --free_places_;
    if (is_placed || was_unplaced) return was_unplaced;
    ++free_places_;
    freed_at_ = now;
    return false;
  }

  void take(const GangEvent& event) {
    const auto now = launcher_.now();
    const bool was_unplaced = count_places(event, now);
    switch (event.kind) {
      case GangEvent::Kind::Notice:
        if (hooks_.notice) hooks_.notice(event.text);
        return;
      case GangEvent::Kind::Placed:
        // As those whose gangs are not placed by then: it does not start any more.
        if (was_unplaced && experiment_.closed() && launcher_.ends_silent())
          return launcher_.end(event.trial);
        if (replaced_.erase(event.trial) > 0) told_to_stop_.erase(event.trial);
        silence_.began(event.trial, now);
        return experiment_.started(event.trial, now, event.places);
      case GangEvent::Kind::Reported:
        return judge(event, now);
      case GangEvent::Kind::Ended:
        forget(event.trial);
        experiment_.ended(event.trial, now);
        return end_hopeless(event, now);
      case GangEvent::Kind::Failed:
        return fail(event, now);
      case GangEvent::Kind::ClusterEnded:
        has_cluster_ended_ = true;
        experiment_.close(event.text, now);
        return end_all();
      case GangEvent::Kind::Impossible:
        if (experiment_.trials()[event.trial].workers > 0) {
          forget(event.trial);
          return experiment_.failed(event.trial, event.text, Fault::System, now);
        }
        if (limits_.sizes_differ) {
          forget(event.trial);
          const auto why = fmt::format(
              "the cluster can never hold the gang that .sized gives for it: {}", event.text);
          return experiment_.failed(event.trial, why, Fault::Final, now);
        }
        impossible_ = event.text;
        if (!limits_.gang.empty()) {
          impossible_ = fmt::format(
              "tune: the cluster can never hold the gang of a trial ({}): {}. Ask for less there, "
              "or "
              "start nodes that have it",
              limits_.gang, event.text);
        }
        experiment_.close(event.text, now);
        experiment_.failed(event.trial, event.text, Fault::Final, now);
        return tell_all_to_end(now);
    }
  }

  void fail(const GangEvent& event, Seconds now) {
    const bool had_no_room = no_room_.erase(event.trial) > 0;
    if (had_no_room && !experiment_.closed()) {
      forget(event.trial);
      const auto why = fmt::format("there was no room for its larger gang within {}",
                                   short_time(kPatienceToGrow));
      return experiment_.failed(event.trial, why, Fault::System, now);
    }
    const bool was_deaf = deaf_.contains(event.trial);
    forget(event.trial);
    if (!was_deaf) {
      experiment_.failed(event.trial, text_of(event), event.fault, now);
      return end_hopeless(event, now);
    }
    const auto why = fmt::format(
        "its attempt that was to end had not, {} after it was told to; its processes were ended",
        short_time(limits_.stop_grace));
    experiment_.failed(event.trial, why, Fault::System, now);
  }

  /// Of a process its end alone: what it printed differs from trial to trial.
  static std::string told_of(const std::string& text) {
    if (text.starts_with(detail::kEndedUnreported)) return text;
    auto end = end_of_process(text);
    return end.empty() ? text : end;
  }

  const std::string& text_of(const GangEvent& failed) const {
    return limits_.plain_errors && !failed.plain_text.empty() ? failed.plain_text : failed.text;
  }

  bool runs_one_before(TrialId last) const {
    const auto& trials = experiment_.trials();
    return std::any_of(trials.begin(), trials.begin() + static_cast<std::ptrdiff_t>(last),
                       [](const Trial& trial) { return trial.status == Status::Running; });
  }

  /// Where the first trials all failed alike, the others need not be tried.
  void end_hopeless(const GangEvent& failed, Seconds now) {
    const auto& trial = experiment_.trials()[failed.trial];
    if (is_hopeful_ || experiment_.closed()) return;
    const bool has_ended = failed.kind == GangEvent::Kind::Ended;
    if (trial.status != Status::Errored) {
      is_hopeful_ = has_ended;
      return;
    }
    const auto& text = has_ended ? trial.error : text_of(failed);  // it never reported what counts
    const auto cause = failed.cause.empty() ? cause_without_report(text) : failed.cause;
    if (failed.fault != Fault::Trial || (alike_ > 0 && cause != first_cause_)) {
      is_hopeful_ = true;  // they differ, as those of a function that can succeed do
      return;
    }
    first_cause_ = cause;
    last_alike_ = std::max(last_alike_, failed.trial);
    const auto size = experiment_.searcher().size();
    const bool is_last = size && experiment_.trials().size() >= *size;
    if (++alike_ < std::max(kAlike, most_in_flight_) || is_last) return;
    if (runs_one_before(last_alike_)) return;  // which may yet succeed, and only take longer
    experiment_.close(
        fmt::format("the first {} trials all failed without a report of '{}', and alike: {}",
                    alike_, experiment_.options().objective.metric, told_of(text)),
        now);
  }

  void forget(TrialId trial) {
    silence_.over(trial);
    after_t_.erase(trial);
    told_to_stop_.erase(trial);
    replaced_.erase(trial);
    deaf_.erase(trial);
  }

  void judge(const GangEvent& event, Seconds now) {
    if (experiment_.options().objective.value_in(event.metrics)) is_hopeful_ = true;
    const auto t = after_t_[event.trial] + event.k;
    const auto checkpoint =
        hooks_.name_of_checkpoint ? hooks_.name_of_checkpoint(event.checkpoint) : event.checkpoint;
    const auto decision = experiment_.report(event.trial, t, event.metrics, checkpoint, now);
    const bool goes_on = std::holds_alternative<GoOn>(decision);
    silence_.reported(event.trial, now);
    if (!goes_on) silence_.over(event.trial);
    if (!goes_on) told_to_stop_.try_emplace(event.trial, now);
    if (const auto* exploit = std::get_if<Exploit>(&decision); exploit && !exploit->in_turn) {
      const auto launch = experiment_.relaunch(event.trial, now);
      after_t_[event.trial] = launch.after_t;
      replaced_.insert(event.trial);
      send_answers();
      return launcher_.replace(launch, event.k);
    }
    answers_.push_back({event.trial, event.k, goes_on ? Verdict::Continue : Verdict::Stop});
  }

  void keep() {
    if (hooks_.keep) hooks_.keep();
  }

  /// In the order of the reports. What is answered is kept: no driver that dies has told a trial
  /// what its journal does not say.
  void send_answers() {
    keep();
    for (const auto& [trial, k, verdict] : answers_) launcher_.answer(trial, k, verdict);
    answers_.clear();
  }

  Experiment& experiment_;
  Launcher& launcher_;
  const DriveLimits& limits_;
  const DriveHooks& hooks_;
  std::vector<Answer> answers_;          // to reports that are judged, and not kept yet
  std::map<TrialId, Seconds> unplaced_;  // when their gangs were asked for
  std::size_t free_places_ = 0;          // that gangs have left, and none has taken yet
  Seconds freed_at_{0};                  // the last of them
  std::set<TrialId> no_room_;  // were told to end, as their larger gangs had not been placed
  std::map<TrialId, std::int64_t> after_t_;  // of all in flight
  Seconds looked_at_silent_{0};
  SilenceWatch silence_;
  std::map<TrialId, Seconds> told_to_stop_;
  // An attempt that is replaced: told to stop, replaced_ -> Placed of the next one, neither; or,
  // once stop_grace is over, deaf_ -> Failed of the next one, which is the system's fault.
  std::set<TrialId> replaced_;
  std::set<TrialId> deaf_;
  std::optional<Seconds> closed_at_;
  std::optional<Seconds> told_all_at_;  // to end with the run
  std::optional<Seconds> ended_all_at_;
  bool has_cluster_ended_ = false;
  bool has_said_wait_ = false;
  bool has_said_last_wait_ = false;
  bool is_hopeful_ = false;  // a trial reported or returned, or two failed in different ways
  std::size_t alike_ = 0;    // trials that failed with first_cause_
  TrialId last_alike_ = 0;   // the one of them that began last
  std::string first_cause_;
  std::size_t most_in_flight_ = 0;
  std::optional<std::string> impossible_;
  std::exception_ptr thrown_;
};

}  // namespace

bool drive(Experiment& experiment, Launcher& launcher, const DriveLimits& limits,
           const DriveHooks& hooks) {
  return Driver(experiment, launcher, limits, hooks).run();
}

}  // namespace troupe::tune
