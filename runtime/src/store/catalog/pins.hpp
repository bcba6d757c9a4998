#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/types.hpp"

namespace troupe::store {

/// Who has one object pinned, and how often. A value that lies with its object; Pins alone changes
/// it.
class PinCounts {
 public:
  struct Pin {
    ProcessId process{};
    std::uint32_t count = 0;
  };

  bool empty() const { return pins_.empty(); }
  std::uint32_t of(ProcessId process) const;  ///< 0: it has none
  auto begin() const { return pins_.begin(); }
  auto end() const { return pins_.end(); }

 private:
  friend class Pins;
  std::vector<Pin> pins_;  // by process
};

/// Which process has which objects of a node pinned: both directions of one relation, which change
/// together. A value.
///
/// 1. A process is among the pins of an object exactly where the object is among those of the
///    process.
/// 2. Each pin that is listed counts at least one; processes are listed once for an object, in
///    ascending order.
/// 3. Nothing is known of a process once it is forgotten.
///
/// Cost: O(1), and the number of processes that have the object pinned.
class Pins {
 public:
  /// One more pin. `counts`: of that object.
  void pin(ObjectId object, PinCounts& counts, ProcessId by);
  /// As many as that, or all that it has. -> whether the process had the object pinned, and has it
  /// no more.
  bool unpin(ObjectId object, PinCounts& counts, ProcessId by, std::uint32_t count);

  bool has_any(ProcessId process) const;
  std::vector<ObjectId> of(ProcessId process) const;  ///< that it has pinned, in no order
  /// Of a process that has nothing pinned any more.
  void forget(ProcessId process);

  /// Throw std::logic_error where an invariant does not hold. For tests; the first for each object,
  /// O(its pins).
  void check(ObjectId object, const PinCounts& counts) const;
  void check_total(std::size_t pins) const;  ///< `pins`: listed with all objects

 private:
  std::unordered_map<ProcessId, std::unordered_set<ObjectId>> of_process_;
};

}  // namespace troupe::store
