#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model.hpp"

namespace troupe::scheduler {

/// The waiting requests of one shape, by arrival.
struct Shape {
  ShapePtr key;
  std::map<std::uint64_t, RequestId> waiting;
  std::map<ProcessId, std::size_t> requesters;  ///< how many of them are whose
  bool stuck = false;                           ///< its first fits no node that was not touched since
  bool possible = true;                         ///< the nodes could hold it with nothing else on them
  std::optional<TimePoint> bounded_since;       ///< only the bound on lease processes has kept it since
};

/// Who waits, by shape and by arrival. A shape is here while a request of it waits. Cost: O(log shapes + log waiting).
class Queue {
 public:
  /// The record that requests of this shape share.
  ShapePtr intern(ShapeKey key);

  Shape& add(const Request& request);
  void remove(const Request& request);
  const Shape* find(const ShapeKey& key) const;

  /// The shape whose first request is the earliest of those from `sequence` on; nullptr if there is none.
  Shape* first_from(std::uint64_t sequence);
  /// All, by their first request; the pointers live until the queue changes.
  std::vector<Shape*> shapes();
  const std::map<ShapeKey, Shape>& by_key() const { return shapes_; }

  bool has_loose() const { return loose_ > 0; }
  void set_stuck(Shape& shape, bool stuck);

 private:
  std::map<ShapeKey, Shape> shapes_;
  std::map<std::uint64_t, Shape*> by_first_;
  std::size_t loose_ = 0;  // shapes that are not stuck
};

}  // namespace troupe::scheduler
