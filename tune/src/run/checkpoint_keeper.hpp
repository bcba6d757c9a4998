#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "text/json.hpp"

namespace troupe::tune::detail {

/// Deletes the checkpoints of a run that are neither among the best of their trial nor its last, and
/// that nobody may go on from. Used by the search's thread.
///
///   1. What Experiment::pinned() names stays, for as long as it does.
///   2. Once the run was interrupted all stays: who goes on with it begins before the last reports.
///   3. Only folders and files inside the run's folder are deleted, and none that holds a checkpoint that stays.
class CheckpointKeeper {
 public:
  /// `keep`: of each trial, the best so many; 0: all stay.
  CheckpointKeeper(std::filesystem::path run, Objective objective, std::size_t keep);

  /// Also the events of an earlier run that this one goes on with.
  void see(const Event& event);
  Json save() const;
  /// Takes up what save() wrote: what was kept by then is known. Throws Json::exception or
  /// std::invalid_argument where it is something else.
  void load(const Json& saved);
  /// Deletes what may go by now.
  void tidy(const Experiment& experiment);

 private:
  struct Kept {
    std::string checkpoint = {};
    std::string path = {};  // the same in one spelling
    double score = 0;
  };
  bool holds_one_that_stays(const std::string& path, const std::vector<std::string>& pinned) const;

  std::string run_;
  Objective objective_;
  std::size_t keep_;
  std::map<TrialId, std::vector<Kept>> kept_;  // in the order in which they were reported
  std::vector<std::string> may_go_;
};

}  // namespace troupe::tune::detail
