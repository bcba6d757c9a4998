#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "run/launch/launcher.hpp"

namespace troupe::tune {

/// A cluster in virtual time: `capacity` gangs fit, every step takes as long as the script says, an
/// event waits for nobody. Deterministic.
class FakeLauncher final : public Launcher {
 public:
  struct Script {
    std::size_t capacity = 1;
    double launch = 0;          ///< of a gang, until it is placed
    std::int64_t reports = 27;  ///< that a function makes before it returns
    std::function<double(const Launch&, std::int64_t t)> value = [](auto&, auto) { return 0.0; };
    std::function<double(const Launch&)> step = [](auto&) { return 1.0; };
    /// The text of an exception instead of report t of this attempt.
    std::function<std::optional<std::string>(const Launch&, std::int64_t t)> failure =
        [](auto&, auto) { return std::nullopt; };
    Fault fault = Fault::Trial;  ///< of such an exception
    /// Whether a checkpoint can be read by the attempt that is to go on from it.
    std::function<bool(const std::string&)> is_there = [](auto&) { return true; };
    /// What is reported with t; empty: nothing.
    std::function<std::string(const Launch&, std::int64_t t)> checkpoint = {};
    bool checkpoints = false;  ///< with every report
    bool deaf = false;         ///< goes on after Stop
    /// Of a gang that is told to end: how long it takes; none: it waits until it is ended.
    std::optional<double> farewell = {};
    bool in_process = false;  ///< nothing ends a gang but the answer to its next report
    bool impossible = false;
    std::string metric = "accuracy";
    /// All that is reported with t, in place of `metric` and `value`; empty: those.
    std::function<Metrics(const Launch&, std::int64_t t)> metrics = {};
    std::optional<double> cluster_ends = {};
  };

  explicit FakeLauncher(Script script) : script_{std::move(script)} {
    constexpr auto nobody = static_cast<TrialId>(-1);
    if (script_.cluster_ends) {
      schedule(*script_.cluster_ends, {.kind = GangEvent::Kind::ClusterEnded,
                                       .trial = nobody,
                                       .text = "the cluster was stopped"});
    }
  }

  void launch(const Launch& launch) override {
    if (waiting_.size() > lost_) FAIL("a second request for a gang before the first was placed");
    if (script_.impossible)
      return schedule(0, {.kind = GangEvent::Kind::Impossible,
                          .trial = launch.trial,
                          .text = "no node has gpu 8"});
    waiting_.push_back(launch);
    place();
  }

  /// So many places go away, as with a node; gangs in them do not end by that.
  void lose(std::size_t places) {
    script_.capacity -= places;
    lost_ += places;
  }
  /// Requests that there is no room for.
  std::size_t waiting() const { return waiting_.size(); }

  std::optional<GangEvent> wait(Seconds timeout) override {
    if (events_.empty() || events_.begin()->first.first > now_ + timeout.count()) {
      now_ += timeout.count();
      return std::nullopt;
    }
    auto event = events_.extract(events_.begin());
    now_ = event.key().first;
    auto& what = event.mapped();
    if (what.kind == GangEvent::Kind::Placed) step(running_.at(what.trial));
    if (seen) seen(what);
    const bool over = what.kind == GangEvent::Kind::Ended || what.kind == GangEvent::Kind::Failed;
    if (over && running_.erase(what.trial) > 0) place();
    ++events_seen;
    most_running = std::max(most_running, running_.size());
    return what;
  }

  void answer(TrialId trial, std::int64_t k, Verdict verdict) override {
    if (ended.contains(trial) || told.contains(trial)) return;  // its Failed is on its way
    auto& gang = running_.at(trial);
    if (gang.k != k) FAIL("an answer to a report that was not made");
    if (verdict == Verdict::Stop && !script_.deaf)
      return schedule(0, {.kind = GangEvent::Kind::Ended, .trial = trial});
    step(gang);
  }

  void replace(const Launch& launch, std::int64_t k) override {
    if (ended.contains(launch.trial)) return;  // its Failed is on its way
    auto& gang = running_.at(launch.trial);
    if (gang.k != k) FAIL("an answer to a report that was not made");
    ++replaced;
    gang = {launch};
    if (!script_.deaf) begin(launch);
  }

  void end(TrialId trial) override {
    const bool waited =
        std::erase_if(waiting_, [&](const auto& launch) { return launch.trial == trial; }) > 0;
    if (!waited && !running_.contains(trial)) return;  // over
    if (!waited && script_.in_process) return;
    ended.insert(trial);
    std::erase_if(events_, [&](const auto& event) { return event.second.trial == trial; });
    schedule(0, {.kind = GangEvent::Kind::Failed, .trial = trial, .text = "killed"});
  }

  bool ends_silent() const override { return !script_.in_process; }

  void tell_to_end(TrialId trial) override {
    if (!running_.contains(trial)) return end(trial);
    told.insert(trial);
    std::erase_if(events_, [&](const auto& event) { return event.second.trial == trial; });
    if (!script_.farewell) return;
    schedule(*script_.farewell,
             {.kind = GangEvent::Kind::Failed, .trial = trial, .text = "ended as told"});
  }

  Seconds now() const override { return Seconds(now_); }

  std::size_t events_seen = 0;
  std::size_t most_running = 0;
  std::size_t replaced = 0;
  /// Called with each event before it is returned.
  std::function<void(const GangEvent&)> seen = {};
  std::set<TrialId> ended;
  std::set<TrialId> told;  ///< to end by themselves

 private:
  struct Gang {
    Launch launch;
    std::int64_t k = 0;
  };

  void schedule(double delay, GangEvent event) {
    events_.emplace(std::pair(now_ + delay, sequence_++), std::move(event));
  }

  void place() {
    if (waiting_.empty() || running_.size() >= script_.capacity) return;
    const auto launch = std::move(waiting_.front());
    waiting_.pop_front();
    running_[launch.trial] = {launch};
    begin(launch);
  }

  void begin(const Launch& launch) {
    ended.erase(launch.trial);
    if (launch.checkpoint.empty() || script_.is_there(launch.checkpoint)) {
      return schedule(script_.launch, {.kind = GangEvent::Kind::Placed, .trial = launch.trial});
    }
    schedule(0, {.kind = GangEvent::Kind::Failed,
                 .trial = launch.trial,
                 .text = launch.checkpoint + " is gone",
                 .fault = Fault::Checkpoint});
  }

  void step(Gang& gang) {
    const auto& launch = gang.launch;
    const auto t = launch.after_t + ++gang.k;
    const auto delay = script_.step(launch);
    if (const auto why = script_.failure(launch, t)) {
      return schedule(delay, {.kind = GangEvent::Kind::Failed,
                              .trial = launch.trial,
                              .text = *why,
                              .fault = script_.fault});
    }
    if (t > script_.reports)
      return schedule(0, {.kind = GangEvent::Kind::Ended, .trial = launch.trial});
    GangEvent report{.kind = GangEvent::Kind::Reported, .trial = launch.trial, .k = gang.k};
    report.metrics = script_.metrics ? script_.metrics(launch, t)
                                     : Metrics{{script_.metric.c_str(), script_.value(launch, t)}};
    if (script_.checkpoint) report.checkpoint = script_.checkpoint(launch, t);
    if (script_.checkpoints)
      report.checkpoint = "checkpoints/" + std::to_string(launch.trial) + "/" + std::to_string(t);
    schedule(delay, std::move(report));
  }

  Script script_;
  double now_ = 0;
  std::uint64_t sequence_ = 0;
  std::map<std::pair<double, std::uint64_t>, GangEvent> events_;
  std::map<TrialId, Gang> running_;
  std::deque<Launch> waiting_;
  std::size_t lost_ = 0;  // places
};

}  // namespace troupe::tune
