#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

struct HyperBandOptions {
  std::int64_t max_t = 81;  ///< reports after which a trial is finished
  int eta = 3;              ///< the best 1/eta of a rung go on; at least 2
};

/// HyperBand (Li et al., 2018, arXiv 1603.06560, algorithm 1): successive halving from several
/// first budgets, since nobody knows how early a bad trial shows. Synchronous: a rung is judged when
/// all of its trials have come to it. Others begin meanwhile, so that no gang waits while there are
/// configurations; asha() waits for nobody.
///
///   Bands     follow each other, each of brackets s = s_max, ..., 0, where eta^s_max is the highest power up to max_t.
///   Bracket   s begins n = ceil((s_max + 1) / (s + 1) * eta^s) trials, in the order of their numbers.
///   Rungs     i = 0, ..., s of it stand at t = floor(max_t / eta^(s - i)).
///   Come      is a trial to its next rung with its first report at or above the rung's t that has the metric: to the
///             first one, and from there only to the one for which it was chosen. A metric that comes now and then may be
///             behind several rungs. Then the trial waits at the lowest of them, and where it is chosen it has come to the
///             next one already, with the same report and without training.
///   Judged    is a rung once each of its trials has come to it or is over, and none is to begin in it (of a bracket
///             that the search does not fill: when a place is free). Of m that
///             came the best floor(m / eta) go on from their checkpoints; at least one, also of a bracket that the search did
///             not fill. (So n / eta^i of n come to rung i, as in the paper.) Values that are equal go by the trials' numbers, the lower first; one that is not finite never
///             goes on. The others stay paused, and are given up when the search is over.
///   Finished  is a trial at max_t.
///   Errored   trials count in the rung that they were on the way to, as its worst; one whose function returned early
///             counts there with the last value that it reported.
///
/// A trial without a checkpoint of its last report trains again what it had trained, when it goes
/// on. A function of (options, objective, order of reports and of free places). Cost of a report:
/// O(trials of its rung), a memmove; of a free place: O(brackets that have begun), and O(trials) of a
/// bracket that the search does not fill.
class HyperBand final : public TrialScheduler {
 public:
  /// One bracket, as it is planned: its rungs' t, and how many trials come to each.
  struct Plan {
    std::vector<std::int64_t> t = {};
    std::vector<std::size_t> trials = {};
  };

  /// Throws std::invalid_argument, naming the values, unless max_t >= 1 and eta >= 2.
  HyperBand(HyperBandOptions options, Objective objective);

  /// The brackets of one band, s_max first.
  const std::vector<Plan>& band() const { return band_; }

  Decision on_report(const Trial& trial, const Population& population) override;
  void on_end(TrialId trial, const Population& population) override;
  Turn on_place(const Population& population) override;
  SchedulerNeeds needs() const override { return {.pauses = true, .counts_trials = true}; }
  std::string why_left(TrialId trial) const override;
  std::vector<RungSummary> rungs() const override;
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  using Entry = std::pair<double, TrialId>;  // the negated score, the trial: the best first
  struct Rung {
    std::vector<Entry> entered = {};   // in order
    std::vector<TrialId> chosen = {};  // once it is judged, the best first
    std::vector<TrialId> goes_on =
        {};                // of them, those that were not resumed yet and have to train
    std::size_t kept = 0;  // the best so many were to go on
    std::size_t not_finite = 0;
    bool is_judged = false;
  };
  struct Progress {
    std::size_t reached = 0;  // rungs that it has come to
    std::int64_t t = 0;       // of the report with which it has come to the last of them
    double last = -std::numeric_limits<double>::infinity();  // score that it reported
    bool is_over = false;
  };
  struct Bracket {
    std::vector<Rung> rungs = {};
    std::map<TrialId, Progress> trials = {};
  };
  struct Place {
    std::size_t bracket = 0;  // among all bands
    std::size_t plan = 0;     // in band_
  };

  Place place_of(TrialId trial) const;
  const Plan& plan_of(std::size_t bracket) const { return band_[bracket % band_.size()]; }
  Bracket& bracket_of(TrialId trial);
  std::size_t begun_in(std::size_t bracket, const Population& population) const;
  void enter(Rung& rung, TrialId trial, double score) const;
  bool is_complete(std::size_t number, const Bracket& bracket, std::size_t rung,
                   const Population& population, bool may_be_unfilled) const;
  std::size_t kept_of(const Rung& rung) const;
  bool has_come_to(std::size_t number, std::size_t rung, const Progress& progress) const;
  static bool is_awaited(const Bracket& bracket, std::size_t rung, TrialId trial);
  void judge(std::size_t number, Bracket& bracket, std::size_t rung) const;
  void judge_complete(std::size_t number, Bracket& bracket, const Population& population,
                      bool may_be_unfilled) const;
  std::optional<Resume> next_of(std::size_t number, Bracket& bracket,
                                const Population& population) const;
  std::string why_chosen(std::size_t number, const Bracket& bracket, std::size_t rung,
                         TrialId trial) const;
  Decision at_rung(const Trial& trial, Bracket& bracket);
  void take_up(std::string_view saved);

  HyperBandOptions options_;
  Objective objective_;
  std::vector<Plan> band_;
  std::vector<TrialId>
      begin_;  // of each bracket in its band, the first trial; then the band's size
  std::map<std::size_t, Bracket> brackets_;  // that have begun
  bool told_of_checkpoints_ = false;
};

/// HyperBand for `.scheduler`. Throws like it, at once.
SchedulerFactory hyperband(HyperBandOptions options = {});

}  // namespace troupe::tune
