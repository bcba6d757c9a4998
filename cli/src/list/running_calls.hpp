#pragma once

#include <cstdint>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

namespace troupe::cli {

/// What leased processes run, as their nodes have told.
class RunningCalls {
 public:
  /// No node was asked.
  RunningCalls() = default;
  /// Of the head's answer to "running".
  explicit RunningCalls(const nlohmann::json& answer);

  /// {"task": its function, "state": "running" or "blocked", "runs": seconds}. The state is "leased" of
  /// a process that runs nothing now, and "unknown" of one whose node has not answered: the two others
  /// are null then.
  nlohmann::json of(const nlohmann::json& process) const;

 private:
  using Number = std::uint64_t;

  std::set<Number> silent_;  // nodes
  std::map<Number, nlohmann::json> told_;
};

}  // namespace troupe::cli
