#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <troupe/tune/schedulers/asha.hpp>

namespace troupe::tune {

/// Asynchronous successive halving, the promotion variant (Li et al., 2020, arXiv 1810.05934,
/// algorithm 2). No trial is given up: each waits at its rung, and goes on from its checkpoint when
/// it has come to be among the best.
///
///   Rungs     stand at t = grace * eta^k, k = 0, 1, ..., below max_t, and at max_t. The paper's last rung is the highest
///             power, which max_t need not be: nobody would ever train to max_t.
///   Entered   in a rung is a trial with its first report at or above the rung's t that has the metric: in the first one,
///             and from there only in the one to which it was promoted. Its score stays what it is. A metric that comes now
///             and then may be behind several rungs. Then the trial waits in the lowest of them; its promotion to the next
///             one takes no training and no place, and is made as soon as it is among the best.
///   Promoted  is, when a place is free, the best trial that is among the best floor(n / eta) of the n in its rung,
///             was not promoted from there, and is paused; of the highest rung (by t, then by bracket) that has one.
///             Without one the next configuration begins. Values that are equal go by the trials' numbers, the lower
///             first. One that is not finite is the worst, and never promoted.
///   Paused    is a trial at its rung, unless it is itself who would be promoted now: that one trains on in its place,
///             as if its place had been given back and taken again.
///   Finished  is a trial at max_t.
///   Over      is the search when nothing runs, nobody is to be promoted and no configuration is left. Where nobody has
///             trained to max_t by then, as in a search of few trials, the best of the highest rung goes on until one
///             has: a search ends with a trial that is trained to its end (the paper's has no end).
///   Errored   trials count in the rung that they were on the way to, as its worst; one whose function returned before
///             max_t counts there with the last value that it reported.
///   Brackets  are drawn like Asha's; each has rungs of its own.
///
/// A trial without a checkpoint of its last report trains from its last one, or from the start, when
/// it goes on: slower, and a notice says so once. A function of (options, objective, seed, order of
/// reports and of free places). Cost of a report: O(trials in the rung), a memmove; of a free place
/// O(log n), and O(trials) once no configuration is left.
class AshaPromotion final : public TrialScheduler {
 public:
  /// Throws like Asha. `options.promote` is not looked at.
  AshaPromotion(AshaOptions options, Objective objective, std::uint64_t seed);

  Decision on_report(const Trial& trial, const Population& population) override;
  void on_end(TrialId trial, const Population& population) override;
  Turn on_place(const Population& population) override;
  SchedulerNeeds needs() const override { return {.pauses = true, .counts_trials = true}; }
  std::string why_left(TrialId trial) const override;
  std::vector<RungSummary> rungs() const override;
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  /// Orders the best first.
  using Entry = std::pair<double, TrialId>;  // the negated score, the trial
  struct Rung {
    std::int64_t t = 0;
    std::vector<Entry> entered = {};
    std::set<Entry> waiting = {};  // of them: finite, not promoted, not ended on the way here
    std::size_t not_finite = 0;
  };
  struct Place {
    std::size_t bracket = 0;
    std::size_t rung = 0;
    Entry entry = {};
  };
  struct Progress {
    std::size_t reached = 0;  // rungs that it has come to
    std::size_t allowed = 1;  // rungs that it may come to: one more with each promotion
    std::int64_t t = 0;       // of the report with which it has come to the last of them
    double last = -std::numeric_limits<double>::infinity();  // score that it reported
    bool is_over = false;
  };
  using IsReady = std::function<bool(TrialId)>;

  std::vector<Rung>& rungs_of(TrialId trial);
  const std::vector<Rung>& rungs_of(TrialId trial) const;
  static void enter(Rung& rung, TrialId trial, double score, bool waits);
  bool has_come_behind(const Place& place) const;
  Place promote(Place place);
  void promote_without_training();
  std::size_t promotable(const Rung& rung) const;
  std::optional<Place> best_of(std::size_t bracket, std::size_t rung,
                               const IsReady& is_ready) const;
  std::optional<Place> next_promotion(const IsReady& is_ready) const;
  std::optional<Place> last_promotion(const Population& population) const;
  std::string named(std::size_t bracket, std::size_t rung) const;
  std::string standing(const Place& place) const;
  Decision at_rung(const Trial& trial, std::size_t rung, const Population& population);
  void take_up(std::string_view saved);

  AshaOptions options_;
  Objective objective_;
  std::uint64_t seed_;
  std::vector<std::vector<Rung>> brackets_;
  std::vector<std::pair<std::size_t, std::size_t>> highest_first_;  // (bracket, rung)
  std::map<TrialId, Progress> trials_;
  bool has_trained_ = false;  // somebody to max_t, with a finite value
  bool told_of_checkpoints_ = false;
};

}  // namespace troupe::tune
