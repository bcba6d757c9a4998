#pragma once

#include <map>
#include <memory>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

/// Counts of ranks.
struct ResourceChangingOptions {
  int total = 0;  ///< that the cluster has room for; has to be given
  int first =
      1;  ///< of a trial's gang when it begins, as `.each.workers` says; others are multiples of it
  int most = 0;  ///< of one gang; 0: all of `total`
  /// A trial grows once it can have so many times as many as it has: each time costs it a pause.
  double factor = 2;
};

/// Lets trials grow into workers that others have left: once no trial is to begin, and none that
/// `base` paused waits, the `total` workers are shared evenly among the trials that are not over. One
/// that can have `factor` times as many as it has is paused at its next checkpoint, and goes on from
/// that with its larger gang at once. All else is as `base` says. After a failure of the cluster, and
/// where it has no room after all, a trial goes on in its first size, which counts neither as a
/// failure nor as a restart, and is offered at most half of what it lost from then on.
///
/// A function like `base`, of the number of trials besides. The function that is trained has to take
/// up a checkpoint that fewer ranks wrote.
class ResourceChanging final : public TrialScheduler {
 public:
  /// Throws std::invalid_argument, naming the values, for options that cannot be, and for a `base`
  /// that searches by itself (population-based training).
  ResourceChanging(std::unique_ptr<TrialScheduler> base, ResourceChangingOptions options);

  Decision on_report(const Trial& trial, const Population& population) override;
  void on_end(TrialId trial, const Population& population) override;
  void on_failure(TrialId trial, const Population& population) override;
  Turn on_place(const Population& population) override;
  std::string why_left(TrialId trial) const override { return base_->why_left(trial); }
  std::optional<Exploit> on_checkpoint_gone(const Trial& trial, const std::string& gone,
                                            const Population& population) override;
  std::vector<std::string> checkpoints() const override { return base_->checkpoints(); }
  SchedulerNeeds needs() const override;
  std::vector<RungSummary> rungs() const override { return base_->rungs(); }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  int size_of(const Trial& trial) const;
  int share_of(const Trial& trial, const Population& population) const;

  std::unique_ptr<TrialScheduler> base_;
  ResourceChangingOptions options_;
  std::map<TrialId, int> growing_;  // paused, or about to be: to so many workers
  std::map<TrialId, int> grown_;    // that they have
  std::map<TrialId, int> limit_;    // of trials that lost a gang of so many
};

/// `.scheduler = tune::resource_changing(tune::asha({.max_t = 81}), {.total = 16})`. Throws like the
/// class, where the run begins.
SchedulerFactory resource_changing(SchedulerFactory base, ResourceChangingOptions options);

}  // namespace troupe::tune
