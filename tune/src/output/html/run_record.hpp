#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "text/json.hpp"

namespace troupe::tune {

/// What of a run's events the report needs and its trials do not hold: when each attempt ran, and
/// when each best value came. Used by the search's thread. Memory: some 60 bytes for each attempt, and
/// 40 for each of its ranks.
class RunRecord {
 public:
  struct Attempt {
    TrialId trial = 0;
    int attempt = 0;
    Seconds begin{0};
    Seconds end{0};
    Status status =
        Status::Running;  ///< of the trial, as it ended; Errored where the attempt failed
    std::vector<Place> places = {};  ///< of each rank; empty: unknown
  };

  /// Also the events of an earlier run that this one goes on with.
  void see(const Event& event, const Trial* trial);
  /// In the order in which they began; those that run end now.
  std::vector<Attempt> attempts(Seconds now) const;
  /// When the trial's best value was reported; 0 where it has none.
  Seconds best_at(TrialId trial) const;

  Json save() const;
  /// Takes up what save() wrote. Throws Json::exception or std::invalid_argument where it is
  /// something else.
  void load(const Json& saved);

 private:
  void end(TrialId trial, Status status, Seconds now);

  std::vector<Attempt> attempts_;
  std::map<TrialId, std::size_t> running_;  // of attempts_
  std::vector<Seconds> best_at_;            // by trial
};

}  // namespace troupe::tune
