#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <troupe/detail/cluster_nodes.hpp>

#include "output/in_use.hpp"

namespace troupe::tune {

/// The nodes of the cluster, as a search has last heard of them from the head. Asks when a node is
/// not known yet, and never waits for the answer. Used by the search's thread.
class KnownNodes {
 public:
  using Clock = std::chrono::steady_clock;

  KnownNodes() { ask(); }

  /// none: the head was asked, and answer() is waited for. A node that the head does not name, or
  /// that this process cannot ask about, is "node N".
  std::optional<std::string> name_of(std::uint32_t number);
  /// The question that is under way; nullptr: there is none.
  const troupe::detail::ObjectPtr& answer() const { return answer_; }
  /// Adds what the cluster has in all, and asks anew where that was last heard 5 s ago.
  void add_totals(InUse& in_use);

 private:
  void ask();
  void take_answer();

  troupe::detail::ObjectPtr answer_;
  Clock::time_point asked_at_;
  std::map<std::uint32_t, std::string> names_;
  std::set<std::uint32_t> wanted_;  // were asked for, and are not known
  std::optional<double> cpus_;
  std::optional<double> gpus_;
};

}  // namespace troupe::tune
