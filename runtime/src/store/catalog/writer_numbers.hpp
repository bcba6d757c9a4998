#pragma once

#include <cstddef>
#include <cstdint>
#include <set>

namespace troupe::store {

/// What is known of the objects of one writer by their numbers alone, which ascend: the create of
/// an object and its frees and gets come by different ways, in any order. A value.
///
/// 1. The last number never falls. An object may come only while its number is above it.
/// 2. Each free that came before its create is remembered until that create has come, or the create
///    of a later object, with which it is passed over; at most `most` are, and the others are given
///    up.
///
/// Cost: O(log frees remembered).
class WriterNumbers {
 public:
  bool may_come(std::uint64_t number) const { return number > last_; }
  /// Of an object that may come.
  void on_early_free(std::uint64_t number, std::size_t most);
  /// Its create has come, accepted or not. -> whether the object was freed before.
  bool on_create(std::uint64_t number);
  std::size_t freed_early() const { return freed_early_.size(); }
  void check() const;  ///< throws std::logic_error where an invariant does not hold; for tests

 private:
  std::uint64_t last_ = 0;  // that it created
  std::set<std::uint64_t> freed_early_;
};

}  // namespace troupe::store
