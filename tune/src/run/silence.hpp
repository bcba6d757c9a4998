#pragma once

#include <map>
#include <optional>
#include <vector>

#include <troupe/tune/trial.hpp>

namespace troupe::tune {

/// Which of the attempts that run have been silent for long: for as long as its maker says, or for more than ten times the longest
/// wait for a report that this run has seen, and more than a minute; for five minutes while it has
/// seen none. What this process itself stood still does not count. Pure; used by the search's thread.
class SilenceWatch {
 public:
  /// Of a whole run: who hangs with the others is told of them.
  static constexpr std::size_t kMostTold = 20;

  struct Silent {
    TrialId trial = 0;
    Seconds waited{0};
    std::optional<Seconds> longest = {};  ///< wait for a report before; none: nobody has reported
  };

  /// `limit`: what counts as long; 0: as above.
  explicit SilenceWatch(Seconds limit = Seconds(0)) : limit_(limit) {}

  /// The trial's attempt runs.
  void began(TrialId trial, Seconds now);
  void reported(TrialId trial, Seconds now);
  /// The attempt has ended, or was told to.
  void over(TrialId trial) { signs_.erase(trial); }
  /// Those that are silent for long, each attempt once. To be asked at least once a second.
  std::vector<Silent> due(Seconds now);

 private:
  Seconds limit() const;
  void leave_out_standstill(Seconds now);

  struct Sign {
    Seconds at{0};  // of its begin or its last report
    bool told = false;
  };
  const Seconds limit_;
  std::map<TrialId, Sign> signs_;
  std::optional<Seconds> longest_;
  std::optional<Seconds> looked_;  // of the last call of any
  std::size_t told_ = 0;
};

}  // namespace troupe::tune
