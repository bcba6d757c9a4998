#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/checkpoints/checkpoint_keeper.hpp"
#include "run/checkpoints/node_removals.hpp"

namespace troupe::tune::detail {

/// When the checkpoints of a run are deleted: here at every step of the search, on nodes that do not
/// share the run's folder twice in a second at most. Used by the search's thread.
class Tidying {
 public:
  explicit Tidying(std::unique_ptr<NodeRemover> remover = std::make_unique<TaskRemover>())
      : remover_{std::move(remover)} {}

  /// `spare` hands out the copies that attempts have no more use for, each once.
  void set_copies(std::function<std::vector<std::string>()> spare) {
    spare_copies_ = std::move(spare);
  }
  /// Does not wait for any node.
  void tick(CheckpointKeeper& keeper, const Experiment& experiment, Seconds now);
  struct Patience {
    std::chrono::milliseconds silence{1000};  ///< until people are told what is waited for
    std::chrono::milliseconds limit{5000};
  };
  /// The last time: waits for what is under way on nodes, as that ends with this program. `say` is
  /// told what is waited for, where that takes its time.
  void finish(CheckpointKeeper& keeper, const Experiment& experiment,
              const std::function<void(const std::string&)>& say, Patience patience);

 private:
  void tidy_here(CheckpointKeeper& keeper, const Experiment& experiment);

  std::unique_ptr<NodeRemover> remover_;
  std::function<std::vector<std::string>()> spare_copies_;
  Seconds told_nodes_{-1};
};

}  // namespace troupe::tune::detail
