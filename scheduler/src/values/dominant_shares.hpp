#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/resources.hpp>

#include "tables/dominant_share.hpp"

namespace troupe::scheduler {

/// Who is served next among jobs, by dominant resource fairness (Ghodsi et al., NSDI 2011, section
/// 4): a job's dominant share is the largest part that it holds of any resource of the cluster,
/// divided by its weight, and whose is smallest comes first. Requests are indivisible and gangs are
/// not recalled, so that shares at one moment say little: jobs are ordered by their shares over the
/// last while, in ranks, so that jobs that are about equal keep the order of arrival.
///
/// 1. What is returning is a part of what is used.
/// 2. The current share is that of what is used, of the total that was set last.
/// 3. The average lies between the least and the largest share that the job has had, where a job
///    begins with none; the rank is that of the average.
/// 4. No job gives way to itself, nor to one that has had more by two ranks. Two jobs do not give
///    way to each other, where what they ask for makes the share of each larger.
///
/// Cost: O(names of resources).
class DominantShares {
 public:
  /// `window`: what was before about that long is forgotten.
  explicit DominantShares(Duration window) : window_{window} {}

  /// What all nodes have. Each share is to be measured then.
  void set_total(const Resources& total);
  /// A job without anything. A weight that is no positive number counts as 1.
  void start(DominantShare& share, double weight, TimePoint now) const;
  /// What there is has changed.
  void measure(DominantShare& share, TimePoint now) const {
    share.share_time_ += share.current_ * static_cast<double>((now - share.current_since_).count());
    share.current_since_ = now;
    share.current_ = of(share, share.used_);
  }

  void use(DominantShare& share, const Resources& more, TimePoint now) const {
    share.used_ += more;
    measure(share, now);
  }
  /// Asserts that it is used.
  void stop_using(DominantShare& share, const Resources& less, TimePoint now) const {
    share.used_ -= less;
    measure(share, now);
  }
  /// Some of what is used is to be given back soon; or is not, or not any more.
  static void expect_back(DominantShare& share, const Resources& part) { share.returning_ += part; }
  static void stop_expecting(DominantShare& share, const Resources& part) {
    share.returning_ -= part;
  }

  /// Of the time since the last review.
  struct Review {
    double passed = 0;  ///< nanoseconds
    double news = 0;    ///< what the time counts in an average, from 0 to 1
  };
  /// nullopt: no time has passed. Else each share is to be reviewed with it, at that time.
  std::optional<Review> begin_review(TimePoint now);
  /// -> whether the rank has changed.
  bool review(DominantShare& share, const Review& review, TimePoint now) const;

  /// A job's share with what is on its way to it, and with a request more.
  struct Step {
    const DominantShare* share = nullptr;
    double from = 0;
    double to = 0;
  };
  Step step_of(const DominantShare& share, const Resources& coming, const Resources& gets) const;
  /// Without what is returning.
  double kept(const DominantShare& share) const {
    return share.returning_.empty() ? share.current_
                                    : of(share, share.used_.without(share.returning_));
  }
  /// Whether a job is to give that back, as another waits: it is ahead, or has had about as much
  /// and keeps no less than the other gets. So jobs of small requests have the same at each moment,
  /// and where a request is so large that one of them must have more, they take turns.
  bool gives_way(const DominantShare& holder, const Resources& gives, const Step& step) const;

  std::optional<std::string> broken_invariant(const DominantShare& share) const;

 private:
  /// The share that the job would have, if it held that.
  double of(const DominantShare& share, const Resources& held) const {
    const bool cpus_alone = held.gpu().is_zero() && !held.has_others();
    const auto part = cpus_alone ? static_cast<double>(held.cpu().ticks()) * part_of_a_cpu_tick_
                                 : dominant_part(held);
    return part * share.per_weight_;
  }
  double dominant_part(const Resources& held) const;
  bool is_ahead(const DominantShare& holder, const Step& step) const;

  Duration window_;
  Resources total_;
  // A ten-thousandth of a CPU, as a part of all: of nearly all that is held.
  double part_of_a_cpu_tick_ = 0;
  TimePoint reviewed_at_{};
};

/// The most that any of several jobs has had, and keeps: where none of them would give way, nobody
/// needs to be looked for.
class Foremost {
 public:
  void add(const DominantShares& shares, const DominantShare& share);
  /// False: none of the jobs gives way to the step, whatever it were to give.
  bool may_give_way(const DominantShares::Step& step) const {
    return kept_ >= step.to ||
           (share_ != nullptr && share_->has_had_more_than(*step.share) && kept_ > step.from);
  }

 private:
  const DominantShare* share_ = nullptr;  // of the highest rank
  double kept_ = 0;
};

}  // namespace troupe::scheduler
