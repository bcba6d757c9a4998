#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "process/address.hpp"
#include "store/types.hpp"

namespace troupe::process {

/// Stored results that processes which have ended wrote for this one: the node names them, since one that was killed
/// between the writing and the reply has told nobody. What this process does not know of by the time when nothing more can
/// come from the writer is freed. Belongs to the loop.
class Orphans {
 public:
  struct Ways {
    std::function<bool(ProcessId writer)> may_answer;  ///< what it has sent may still arrive
    std::function<bool(store::ObjectId)> is_known;     ///< a handle of it lives here
    std::function<void(store::ObjectId)> free;
  };
  explicit Orphans(Ways ways) : ways_(std::move(ways)) {}

  void named(const std::vector<store::ObjectId>& objects);
  /// Nothing more comes from this process.
  void lost(ProcessId writer);

 private:
  void settle(store::ObjectId object);

  Ways ways_;
  std::unordered_map<ProcessId, std::vector<store::ObjectId>> waiting_;  // by writer
};

}  // namespace troupe::process
