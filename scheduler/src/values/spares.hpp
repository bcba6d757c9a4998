#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// Spares: worker processes that nobody uses, which wait on their nodes for the next request of
/// their job. A spare is ready or still starts; it has no role, and holds nothing once it is ready.
/// Who becomes a spare and what ends one is decided by the Cluster.
///
/// 1. A process is in the list of a node exactly where it is in the order of idleness.
/// 2. A spare is listed once, on its own node and with its own job.
/// 3. Both orders are by when the process became a spare, of equal times by which came first.
///
/// Cost: O(spares of the node) where nothing else is said.
class Spares {
 public:
  static bool is_spare(const Process& process) { return process.by_idleness.is_linked(); }

  /// The process becomes the latest spare of its node. Asserts that it is none yet.
  void add(Process& process, TimePoint now);
  /// Nothing happens where the process is no spare.
  void remove(Process& process) {
    if (is_spare(process)) unlist(process);
  }
  /// The spare has been idle from now on.
  void renew(Process& process, TimePoint now);
  /// The last spare of the job there, of those with that many threads, that is ready, or else the
  /// last one that will be; it is no spare any more. nullptr if the job has none there.
  Process* take(const Job& job, Node& node, std::uint32_t threads);

  /// Where more than `most` of the spares could go without harm to others (Process::is_needed), the
  /// first of these; else nullptr.
  static Process* surplus(const SpareList& spares, std::size_t most) {
    return spares.size() <= most ? nullptr : surplus_of_many(spares, most);
  }
  /// All that have been idle since then or for longer, who became so first in front. Cost: O(their
  /// number).
  std::vector<Process*> idle_since(TimePoint time);

  /// `nodes`: all of them. Cost: O(processes * spares of a node).
  std::optional<std::string> broken_invariant(const std::vector<const Node*>& nodes) const;

 private:
  static void unlist(Process& process);
  static Process* surplus_of_many(const SpareList& spares, std::size_t most);

  Chain<Process, &Process::by_idleness> by_idleness_;
};

}  // namespace troupe::scheduler
