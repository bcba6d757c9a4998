#pragma once

#include <map>
#include <memory>
#include <set>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

class Explorer;

/// Of population-based training. t is the number of a trial's reports, counted through its donors.
struct PbtOptions {
  /// Reports between two times that a member is judged; at least 1, has to be given.
  std::int64_t interval = 0;
  std::int64_t burn_in = 0;  ///< nobody is judged before this t
  std::int64_t max_t = 0;    ///< a trial is finished at this t; 0: when its function returns
  /// Part of the population that takes over, and that is taken over; 0 to 0.5.
  double quantile = 0.25;
  /// Probability that a field is drawn anew from its domain, not changed a little.
  double resample = 0.25;
  /// A number is multiplied by one of these, each equally likely.
  std::vector<double> factors = {1.2, 0.8};
  /// The population waits for its last member at every interval.
  bool synchronous = false;
  /// The fields that change: {{"lr", loguniform(1e-4, 1)}}; others keep the donor's value.
  SearchSpace mutate = {};
};

/// Population-based training (Jaderberg et al., 2017, arXiv 1711.09846, algorithm 1 with truncation
/// selection; Ray's pbt.py where the paper is silent or this comment says so). The trials of the
/// run are the population.
///
///   1 Judged   is a member at its first report with t >= burn_in that is an interval after the t at which it was
///              judged before (0 at first). Its value, its configuration and its last checkpoint are noted. A report
///              without the metric is not judged; the next one is. A value that is not finite is worse than any other.
///   2 Quantile of the n members that were judged and are not over, by value and, where equal, by id:
///              k = ceil(n * quantile), floor(n / 2) if that is more than n / 2; the k lowest and the k highest. None
///              for n <= 1 (Ray).
///   3 Exploit  does a judged member among the lowest. Its donor is drawn from the highest, each equally likely
///              (paper), among those with a finite value and a checkpoint. The member goes on from the checkpoint that
///              the donor had when it was judged, in the same step, with its own number, and with the donor's t: of
///              the report that came with the checkpoint. It is judged again an interval after its donor was (Ray).
///              Without such a donor it goes on.
///   4 Explore  changes the donor's configuration, field by field of `mutate`; the others keep the donor's value. With
///              probability `resample` a field is drawn anew from its domain. Else, by the kind of the domain:
///              a range       is multiplied by one of the factors, and kept inside the range (Ray leaves it);
///              an integer    is multiplied too, rounded, and moved by one at least where the range allows (Ray truncates);
///              a choice      moves to the value before or after it, each equally likely, and stays where there is
///                            none (Ray); one that is not among the values is drawn anew;
///              a constant    is what the domain says.
///   5 Turns    A population larger than the room takes turns: a judged member is paused, at its next report with a
///              checkpoint, while another one without a place is further behind. One that exploits waits while
///              another one without a place is at its new t or behind it. A free place goes to a configuration that
///              was not begun, then to the paused member with the lowest t, of equals to the one that has waited
///              longest. Otherwise nobody waits for anybody.
///   6 Synchronous: a member is judged at its first report with t >= sync_t, which is max(interval, burn_in) at first,
///              and then is paused at its next report with a checkpoint. When the last one was judged, all who are
///              among the lowest exploit, all go on, and sync_t is the larger of sync_t + interval and the highest t.
///              Not waited for are members that are over, and one whose attempt failed until it reports again.
///   7 Gone     is a checkpoint that is not there when a member is to go on from it: the member takes over the best of
///              the highest whose checkpoint is not known to be gone; else it goes on from where it was.
///   8 Finished is a trial at t >= max_t, unjudged. It is no donor any more (Ray).
///   9 Last     While a trial that ended by itself (its function returned, or `.stop` ended it) has come as far as any
///              other, training is taken to end at its t: a member at that t takes over nobody, and nobody takes over
///              a checkpoint of that t, but for a member whose checkpoint is gone. Ray takes over there, and nothing is
///              trained with the new configuration.
///
/// A function of (options, objective, seed, order of reports). Cost of a judged report: O(n log n), and
/// a look at all takeovers so far.
class Pbt final : public TrialScheduler {
 public:
  /// Throws std::invalid_argument, naming the values, unless interval >= 1, burn_in >= 0, max_t is
  /// 0 or above interval and burn_in, 0 <= quantile <= 0.5, 0 <= resample <= 1, there are factors,
  /// all positive and finite, and `mutate` has a field and none twice.
  Pbt(PbtOptions options, Objective objective, std::uint64_t seed);
  /// With another way to explore than that of rule 4. Not null.
  Pbt(PbtOptions options, Objective objective, std::uint64_t seed,
      std::unique_ptr<Explorer> explorer);
  ~Pbt() override;

  Decision on_report(const Trial& trial, const Population& population) override;
  void on_end(TrialId trial, const Population& population) override;
  void on_failure(TrialId trial, const Population& population) override;
  Turn on_place(const Population& population) override;
  std::optional<Exploit> on_checkpoint_gone(const Trial& trial, const std::string& gone,
                                            const Population& population) override;
  std::vector<std::string> checkpoints() const override;
  SchedulerNeeds needs() const override;
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  /// What is known of a member that is not over.
  struct Member {
    std::int64_t judged_t = 0;         // the next judgement is an interval later
    std::int64_t before_takeover = 0;  // judged_t, before its last takeover changed that
    std::int64_t noted_t = 0;          // the last time that it was judged
    std::optional<double> value = {};  // of the metric then
    Configuration config = {};         // and what it had then
    std::string checkpoint = {};
    std::int64_t checkpoint_t = 0;
    std::size_t takeovers = 0;
    bool pausing = false;  // at its next report with a checkpoint
    bool arrived = false;  // synchronous: was judged since the population went on last
    bool failed = false;   // its attempt, and it has not reported since
    // Synchronous: decided when the last member arrived, and not handed out yet.
    std::optional<Exploit> due = {};
  };
  struct Quantiles {
    std::vector<TrialId> lowest;
    std::vector<TrialId> highest;  // the best last
    std::vector<TrialId> all;      // likewise
  };

  bool is_due(const Trial& trial, const Member& member) const;
  void judge(const Trial& trial, Member& member, double value);
  Quantiles quantiles() const;
  bool can_donate(TrialId trial, std::int64_t end) const;
  std::optional<Exploit> draw_exploit(const Trial& trial, const Quantiles& quantiles,
                                      const Population& population);
  std::string standing(TrialId trial, const Quantiles& quantiles) const;
  Exploit make_exploit(TrialId trial, TrialId donor);
  Decision judged_alone(const Trial& trial, const Population& population);
  Decision judged_together(const Trial& trial, const Population& population);
  Decision pause_or_go_on(const Trial& trial, Member& member, std::string why);
  Exploit hand_out(const Trial& trial, Member& member, Exploit exploit,
                   const Population& population);
  bool all_arrived(const Population& population) const;
  void go_on_together(const Population& population);
  void go_on_without(const Population& population);
  void take_up(std::string_view saved);

  PbtOptions options_;
  Objective objective_;
  std::uint64_t seed_;
  std::unique_ptr<Explorer> explorer_;
  std::int64_t sync_t_;
  std::uint64_t draws_ = 0;  // of donors and of configurations: each has a random stream of its own
  bool told_checkpoint_is_missing_ = false;
  std::map<TrialId, Member> members_;
  std::set<std::string> gone_;  // checkpoints that nobody can go on from
};

/// Population-based training for `.scheduler`. Throws like Pbt, at once.
SchedulerFactory pbt(PbtOptions options);

}  // namespace troupe::tune
