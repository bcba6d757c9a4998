#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "ids/address.hpp"
#include "store/client/client.hpp"

namespace troupe::runtime {

/// Stored results that processes which have ended wrote for this one: their node names them,
/// through the head where it is another one, since one that was killed between the writing and the
/// reply has told nobody. What this process does not know of by the time when nothing more can come
/// from the writer is freed: the naming and what the writer has sent take different ways, and
/// either may come first. Belongs to the loop.
class Orphans {
 public:
  struct Callbacks {
    std::function<bool(ProcessId writer)> may_answer;  ///< what it has sent may still arrive
    std::function<bool(store::ObjectId)> is_known;     ///< a handle of it lives here
    std::function<void(const store::Wanted&)> free;
  };
  explicit Orphans(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  /// `at`: the store where they lie; nullptr: that of this node.
  void named(const std::vector<store::ObjectId>& objects, const AddressPtr& at);
  /// Nothing more comes from this process.
  void lost(ProcessId writer);

 private:
  void settle(const store::Wanted& place);

  Callbacks callbacks_;
  std::unordered_map<ProcessId, std::vector<store::Wanted>> waiting_;  // by writer
};

}  // namespace troupe::runtime
