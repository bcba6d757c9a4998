#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "growth/room_watch.hpp"

namespace troupe::launch {

/// When an elastic gang is ended to be formed anew with more ranks. It lives as long as the run, in
/// its driver, across all attempts. Pure: time is passed in.
///
///   [forming] --on_formed()--> [watching] --a look: there was room for wait()--> [growing]
///       ^------on_ended()----------|                                                |
///       ^----------------------------------------------------------on_ended()-------|
///
/// 1. goal() is 0 until looks at the cluster have shown room for more ranks than run for wait(), with
///    no request that waits (RoomWatch has what counts), and from then on until on_formed(),
///    on_not_started() or on_ended(false).
/// 2. goal() is larger than the gang, and at most `most`.
/// 3. A gang that is formed for a goal and has no more ranks than the one before, or of which none
///    starts (on_not_started()), has grown in vain: wait() doubles, up to kLongestWait. One that has
///    more ranks than any before it brings wait() back to what it was at first. One that has only what
///    has been had already leaves it: a gang that is made smaller by others time and again grows ever
///    more rarely.
/// 4. A gang that was ended by something else (a failure) leaves wait() as it is.
/// 5. is_watching() only where a look can show anything: the gang runs, and has fewer ranks than `most`.
/// 6. Looks lie step() apart, at least six in wait(). Each that the head does not answer doubles step(),
///    up to kLongestSilentStep, until one is answered: who asks waits for the answer meanwhile.
/// 7. After a goal that brought nothing, though the gang has as many ranks as before, room counts only
///    if it is for more ranks than that goal: it may be room that can never be had (two GPUs that are
///    free in parts). That is over once a look shows no room for more ranks than run, or the gang has
///    another number of them.
class Growth {
 public:
  using Duration = RoomWatch::Duration;
  static constexpr std::chrono::hours kLongestWait{1};
  static constexpr std::chrono::seconds kLongestStep{5};
  static constexpr std::chrono::minutes kLongestSilentStep{1};

  Growth(Duration after, int most)
      : after_(after), most_(most), had_{.wait = after}, had_before_(had_) {}

  /// The programs of so many ranks run.
  void on_formed(int ranks);
  /// `passed`: since the look before, or since the gang was formed. `seen`: none where the head did
  /// not answer.
  void on_look(const std::optional<RoomSeen>& seen, Duration passed);
  /// The gang has ended: for the goal, or by something else.
  void on_ended(bool for_goal);
  /// None of the ranks that were to run after on_ended(true) has: they could not be started, or not
  /// even be formed, whether on_formed() was called or not.
  void on_not_started();

  bool is_watching() const { return watch_ && goal_ == 0; }
  /// With how many ranks the gang has had room; 0: it stays as it is.
  int goal() const { return goal_; }
  /// Of the gang that runs or ran last; after on_not_started(): of the one before that.
  int ranks() const { return had_.ranks; }
  Duration wait() const { return had_.wait; }
  Duration step() const;

 private:
  /// What is known of the gangs so far.
  struct Had {
    Duration wait;
    int ranks = 0;  // of the gang that runs, or ran last
    int most = 0;   // of any
    int vain = 0;   // a goal that brought nothing; 0: there is none
  };

  void double_wait() {
    had_.wait = std::min(had_.wait * 2, std::max<Duration>(after_, kLongestWait));
  }

  Duration after_;
  int most_;
  Had had_;
  int goal_ = 0;
  Had had_before_;                  // as the gang was ended for a goal
  int goal_before_ = 0;             // that one
  int silent_looks_ = 0;            // the last ones
  std::optional<RoomWatch> watch_;  // of a gang that runs and can have more ranks
};

}  // namespace troupe::launch
