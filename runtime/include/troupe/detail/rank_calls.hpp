#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <troupe/detail/core.hpp>

namespace troupe::detail {

/// Calls on the ranks of one gang that are under way. Of several that fail it finds the failure to
/// blame: a rank's own error or death rather than that the gang is broken, which its other ranks
/// report. Used by one thread; never blocks.
class RankCalls {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void add(ObjectPtr call) { calls_.push_back(std::move(call)); }
  /// Looks at what has come. Throws the failure to blame, once it is known, or has not been found
  /// within two seconds after the first failure.
  void look();
  /// Whether none is under way any more, whatever became of it. Throws nothing.
  bool have_ended();
  /// True once all of them have come with values, as look() has seen.
  bool done() const { return calls_.empty() && !failure_; }
  /// True once one of them has failed, as look() has seen.
  bool failing() const { return failure_.has_value(); }
  /// Adds what look() has not seen come.
  void collect(std::vector<ObjectPtr>& objects) const;
  /// When look() has something to say though nothing comes.
  std::optional<TimePoint> look_again() const {
    return failure_ ? std::optional(blame_at_) : std::nullopt;
  }

 private:
  void sift();
  void note(const Failure& failure);

  std::vector<ObjectPtr> calls_;
  std::optional<Failure> failure_;  ///< the best one to blame so far
  TimePoint blame_at_;
};

/// Waits until one of the objects is ready, or that time has come, where there is one.
void wait_for_any(const std::vector<ObjectPtr>& objects, std::optional<RankCalls::TimePoint> until,
                  CpuMeanwhile cpu = CpuMeanwhile::GivenBack);

}  // namespace troupe::detail
