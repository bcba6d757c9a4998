#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/types.hpp"

namespace troupe::store {

/// Who has written to a range, and so has its pages in its page table: the most recent few, sorted.
using Writers = std::vector<ProcessId>;
inline constexpr std::size_t kMostWriters = 4;
/// `by` becomes one of them; the smallest number goes where there are too many.
void add_writer(Writers& writers, ProcessId by);

/// Hands out ranges of an arena's address space. Pure: it knows numbers, not memory. Every byte is
/// in one of three states:
///
///       .-------------- take_hole -------------.     the caller puts pages there (commit)
///       |                                      v
///    [hole] <--- give_back_hole ----------- [used]
///       ^                                    |  ^
///       |                       give_back    v  |  take_warm: no system call, the pages are there
///       `------------- release ------------ [warm]   of release: the caller takes the pages away (punch)
///
/// The space is meant to be many times larger than the memory that is ever used at once: address
/// space costs nothing. Then memory never fragments: where no warm range fits, as many pages as
/// needed move elsewhere by release and take_hole. Best fit in warm ranges and in holes. Lives in
/// the node. Cost: O(log n), but for take_warm where no single warm range is large enough: O(warm
/// ranges).
class Extents {
 public:
  struct Taken {
    Extent extent;
    Writers writers;  // of all of it, so far
  };

  /// `space_bytes`: whole pages.
  explicit Extents(std::uint64_t space_bytes);

  /// The tightest warm range that `by` has written to before, else the tightest one, else
  /// neighbours that fit together.
  std::optional<Taken> take_warm(std::uint64_t bytes, ProcessId by);
  std::optional<Extent> take_hole(std::uint64_t bytes);
  /// Exactly what was taken, or a part of it; asserts that it was.
  void give_back(Extent extent, Writers writers);
  void give_back_hole(Extent extent);
  /// Turns warm ranges into holes, those that were given back first before others, until they have
  /// `bytes` or none is left.
  std::vector<Extent> release(std::uint64_t bytes);

  std::uint64_t space() const { return space_; }
  std::uint64_t warm() const { return warm_bytes_; }
  std::uint64_t used() const { return space_ - warm_bytes_ - hole_bytes_; }
  std::uint64_t largest_hole() const {
    return holes_by_size_.empty() ? 0 : holes_by_size_.rbegin()->first;
  }
  std::uint64_t largest_warm() const {
    return warm_by_size_.empty() ? 0 : warm_by_size_.rbegin()->first;
  }

 private:
  struct Warm {
    std::uint64_t bytes;
    std::uint64_t age;
    Writers writers;
  };
  using BySize = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // bytes, offset
  using WarmAt = std::map<std::uint64_t, Warm>::iterator;

  std::optional<std::uint64_t> join_neighbours(std::uint64_t bytes);
  Taken cut(std::uint64_t offset, std::uint64_t bytes);
  void add_warm(Extent extent, std::uint64_t age, Writers writers);
  Warm remove_warm(WarmAt at);
  void add_hole(Extent extent);
  void remove_hole(std::map<std::uint64_t, std::uint64_t>::iterator at);
  bool is_used(Extent extent) const;

  std::uint64_t space_;
  std::uint64_t warm_bytes_ = 0;
  std::uint64_t hole_bytes_ = 0;
  std::uint64_t last_age_ = 0;
  std::map<std::uint64_t, Warm> warm_;  // by offset
  BySize warm_by_size_;
  std::map<std::uint64_t, std::uint64_t> warm_by_age_;  // age -> offset
  std::unordered_map<ProcessId, BySize> warm_of_;
  std::map<std::uint64_t, std::uint64_t> holes_;  // offset -> bytes; never two that touch
  BySize holes_by_size_;
};

}  // namespace troupe::store
