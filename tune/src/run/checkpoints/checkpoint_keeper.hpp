#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "run/checkpoints/checkpoint_names.hpp"
#include "run/checkpoints/node_removals.hpp"
#include "text/json.hpp"

namespace troupe::tune::detail {

/// Deletes the checkpoints of a run that are neither among the best of their trial nor its last, that
/// go with no trial's best report, and that nobody may go on from. Used by the search's thread.
///
///   1. What Experiment::pinned() names stays, for as long as it does.
///   2. Once the run was interrupted all stays: who goes on with it begins before the last reports.
///   3. Only folders and files inside the run's folder are deleted, and none that holds a checkpoint that stays.
///   4. A trial's Trial::best_checkpoint stays, also where the report with it was not among the best, or is another
///      trial's.
///   5. All of this holds on nodes that do not share the folder with the driver, by what is there.
///   6. Nodes may share a folder with each other, so one path on several nodes counts as the same file there. Since
///      nobody waits until a node has deleted something, a path that an attempt may write once more, as its trial
///      has gone back, is not deleted on a node before the trial is over.
///
/// The copies of checkpoints that attempts were sent are deleted in the same way, if nobody reported them. What is to
/// go on a node is kept until the node was told: at most what its trials reported there, and nothing once the node has
/// left the cluster. Checkpoints are known by the names that CheckpointNames gives them, also in save().
class CheckpointKeeper {
 public:
  /// `run`: the path of the run's folder as trials are told of it. `keep`: of each trial, the best so
  /// many; 0: all stay.
  CheckpointKeeper(std::filesystem::path run, Objective objective, std::size_t keep);

  /// `trial`: the event's, which is applied already. Also the events of an earlier run that this one
  /// goes on with.
  void see(const Event& event, const Trial* trial);
  Json save() const;
  /// Takes up what save() wrote: what was kept by then is known. Throws Json::exception or
  /// std::invalid_argument where it is something else.
  void load(const Json& saved);
  /// A copy that an attempt was sent, and has no more use for.
  void see_spare_copy(const std::string& copy);
  /// Deletes what may go by now, but for what is on nodes that do not share the folder.
  void tidy(const Experiment& experiment);
  /// Tells those of them that are free to delete what may go there by now. Cost: proportional to
  /// the checkpoints that stay.
  void tidy_nodes(const Experiment& experiment, NodeRemover& nodes);

 private:
  struct Kept {
    std::string checkpoint = {};
    std::string path = {};  // the same in one spelling
    double score = 0;
    std::int64_t t = 0;
    std::size_t takeovers = 0;  // of its trial, before it was reported
  };
  /// What may go on a node.
  struct OnNode {
    std::string checkpoint = {};
    TrialId trial = 0;
    std::int64_t t = 0;
    std::size_t takeovers = 0;
    bool may_come_again = false;  // an attempt may write it once more
  };
  struct Staying {
    std::string path = {};
    std::optional<std::uint32_t> node = {};
    friend auto operator<=>(const Staying&, const Staying&) = default;
  };
  struct Best {
    std::string checkpoint = {};
    std::string path = {};  // the same in one spelling
  };
  std::string normal(const std::string& checkpoint) const;
  std::string path_on_node(const std::string& checkpoint) const;
  void let_others_go(TrialId trial);
  void let_go(OnNode checkpoint);
  bool holds_one_that_stays(const std::string& path, const std::vector<std::string>& pinned) const;
  std::vector<Staying> all_that_stay(const Experiment& experiment) const;

  std::string told_run_;  // as trials are told of it
  CheckpointNames names_;
  std::string run_;  // in one spelling
  Objective objective_;
  std::size_t keep_;
  std::map<TrialId, std::vector<Kept>> kept_;  // in the order in which they were reported
  std::map<TrialId, Best> best_;               // of the trials that have one
  std::vector<std::string> may_go_;
  std::vector<OnNode> may_go_on_nodes_;
};

}  // namespace troupe::tune::detail
