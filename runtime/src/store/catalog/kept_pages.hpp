#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "store/memory/extents.hpp"
#include "store/types.hpp"

namespace troupe::store {

/// The pages that processes have freed and keep for their next objects, so that these need no
/// message. A value.
///
/// 1. No process keeps more than the limit.
/// 2. No two extents that a process keeps overlap.
/// 3. bytes() is the sum over all processes.
/// 4. Nothing is known of a process from which all was taken, until it keeps again.
class KeptPages {
 public:
  using Taken = Extents::Taken;

  explicit KeptPages(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Below the limit, for as much more.
  bool has_room(ProcessId process, std::uint64_t bytes) const;
  /// Only where there is room.
  void keep(ProcessId process, Taken pages);
  /// What it keeps at that offset, all of it, where that is `bytes` or more. nullopt: it keeps no
  /// such pages.
  std::optional<Taken> take(ProcessId process, std::uint64_t offset, std::uint64_t bytes = 0);
  std::vector<Taken> take_all(ProcessId process);

  bool has_any(ProcessId process) const;
  std::uint64_t bytes() const { return bytes_; }
  std::vector<Extent> of(ProcessId process) const;  ///< by offset
  /// Throws std::logic_error where an invariant does not hold; for tests, O(n)
  void check() const;

 private:
  struct Pages {
    std::map<std::uint64_t, Taken> at;  // by offset
    std::uint64_t bytes = 0;
  };

  std::uint64_t most_bytes_;  // of one process
  std::uint64_t bytes_ = 0;
  std::unordered_map<ProcessId, Pages> of_;
};

}  // namespace troupe::store
