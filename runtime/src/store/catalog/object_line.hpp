#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "store/types.hpp"

namespace troupe::store {

/// Objects in an order, each at a place of its own, which it may leave from anywhere: a line of
/// those that wait for memory, or of those that may leave memory, the least recently used first. A
/// value; its users keep the places.
///
/// 1. Objects stand in the order in which they joined, those that joined in front before all
///    others.
/// 2. A place names one object from its join until it leaves; no place is given twice.
/// 3. No object stands in a line twice.
///
/// Cost: O(1) to join, O(log n) to leave.
class ObjectLine {
 public:
  /// Where an object stands in a line; nowhere at first.
  class Place {
   public:
    explicit operator bool() const { return number_ != 0; }

   private:
    friend class ObjectLine;
    std::uint64_t number_ = 0;
  };

  /// At the end. `place`, the object's, becomes what leave() needs; asserts that the object stood
  /// nowhere.
  void join(ObjectId object, Place& place);
  /// Before all others.
  void join_front(ObjectId object, Place& place);
  /// `place` is nowhere afterwards. No effect where it is already.
  void leave(Place& place);

  bool empty() const { return objects_.empty(); }
  std::size_t size() const { return objects_.size(); }
  ObjectId front() const { return objects_.begin()->second; }  ///< of a line that is not empty
  bool holds(ObjectId object, Place place) const;
  /// Throws std::logic_error where an invariant does not hold; for tests, O(n)
  void check() const;

 private:
  // Numbers never reach 0, which is nowhere.
  static constexpr std::uint64_t kMiddle = std::uint64_t{1} << 63;
  std::map<std::uint64_t, ObjectId> objects_;
  std::uint64_t before_ = kMiddle;     // the next number in front
  std::uint64_t after_ = kMiddle + 1;  // the next number at the end
};

}  // namespace troupe::store
