#pragma once

#include <cstdint>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/resources.hpp>

namespace troupe::scheduler {

/// What one job uses of the cluster, and has used. A value that lies with its job; DominantShares
/// alone changes it.
class DominantShare {
 public:
  double weight() const { return weight_; }
  const Resources& used() const { return used_; }
  const Resources& returning() const { return returning_; }  ///< a part of what is used
  double current() const { return current_; }                ///< of the cluster now, by weight
  double average() const { return average_; }  ///< over the last while, up to the last review
  /// The average in levels: the lowest is served first.
  std::uint32_t rank() const { return rank_; }
  /// For a while, by an eighth to a quarter.
  bool has_had_more_than(const DominantShare& other) const { return rank_ >= other.rank_ + 2; }

 private:
  friend class DominantShares;
  double weight_ = 1;
  double per_weight_ = 1;  // 1 / weight
  Resources used_;
  Resources returning_;
  double current_ = 0;
  TimePoint current_since_{};
  double share_time_ = 0;  // shares times nanoseconds since the last review, until current_since_
  double average_ = 0;
  std::uint32_t rank_ = 0;
};

}  // namespace troupe::scheduler
