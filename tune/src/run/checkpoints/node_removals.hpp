#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <troupe/ref.hpp>

/// How checkpoints are deleted on nodes that do not share the run's folder with the driver.
namespace troupe::tune::detail {

/// Of two paths in one spelling.
bool is_inside(const std::string& path, const std::string& folder);

/// Deletes the files and folders `gone` of the run in the folder `run`, on the node where this is
/// called. Stays: what is not there, what leads out of the run's folder, and what holds one of
/// `staying` once links are followed. Never throws; what cannot be deleted stays.
void remove_checkpoints(const std::string& run, const std::vector<std::string>& gone,
                        const std::vector<std::string>& staying);

/// The arguments of remove_checkpoints().
struct NodeRemoval {
  std::string run = {};
  std::vector<std::string> gone = {};
  std::vector<std::string> staying = {};
};

/// Deletes on nodes. Every call but wait_for_one() returns at once. Used by the search's thread.
class NodeRemover {
 public:
  enum class Node : std::uint8_t {
    Free,
    Busy,  ///< with the last removal
    Gone,  ///< from the cluster, for good
  };
  virtual ~NodeRemover() = default;
  virtual Node look_at(std::uint32_t node) = 0;
  /// Of a node that is Free: begins, and is not told of again.
  virtual void remove(std::uint32_t node, const NodeRemoval& removal) = 0;
  /// Waits until a node is done with its removal. False: none has one, or the time is over.
  virtual bool wait_for_one(std::chrono::steady_clock::time_point deadline) = 0;
};

/// Deletes by a task without resources, one at a time on each node. The task needs no gang there,
/// and waits for none: rank 0 of a gang is in a call for as long as its function trains.
class TaskRemover final : public NodeRemover {
 public:
  TaskRemover() = default;
  /// What has not begun does not begin.
  ~TaskRemover() override;
  TaskRemover(const TaskRemover&) = delete;
  TaskRemover& operator=(const TaskRemover&) = delete;

  Node look_at(std::uint32_t node) override;
  void remove(std::uint32_t node, const NodeRemoval& removal) override;
  bool wait_for_one(std::chrono::steady_clock::time_point deadline) override;

 private:
  std::map<std::uint32_t, Ref<void>> under_way_;
  std::set<std::uint32_t> gone_;  // nodes
};

}  // namespace troupe::tune::detail
