#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "model.hpp"

namespace troupe::scheduler {

/// The waiting requests of one shape, by arrival.
struct Shape {
  ShapePtr key;
  Chain<Request, &Request::in_line> waiting;
  std::size_t size = 0;                                          ///< of `waiting`
  boost::unordered_flat_map<ProcessId, std::size_t> requesters;  ///< how many of them are whose; never walked through
  bool stuck = false;                                            ///< its first fits no node that was not touched since
  bool possible = true;                                          ///< the nodes could hold it with nothing else on them
  std::optional<TimePoint> bounded_since;  ///< only the bound on lease processes has kept it since

  Request& first() { return waiting.front(); }
  const Request& first() const { return waiting.front(); }
  /// A copy, as requests that are answered leave.
  std::vector<Request*> everyone();
};

/// Who waits, by shape and by arrival. A shape is here while a request of it waits. Cost: O(log shapes), and for one that
/// comes back to its old place as many as have come back before it.
class Queue {
 public:
  /// A shape is made where it is new; a request must be added to it then. `known`: its record, if there is one already.
  Shape& shape_for(const ShapeView& wanted, ShapePtr known = nullptr);
  void add(Request& request, Shape& shape);
  void remove(Request& request);
  Shape* find(const ShapeView& wanted);
  const Shape* find(const ShapeView& wanted) const;

  /// The shape whose first request is the earliest of those from `sequence` on; nullptr if there is none.
  Shape* first_from(std::uint64_t sequence);
  /// All, by their first request; the pointers live until the queue changes.
  std::vector<Shape*> shapes();
  const std::map<ShapeKey, Shape, ShapeOrder>& by_key() const { return shapes_; }

  bool has_loose() const { return loose_ > 0; }
  void set_stuck(Shape& shape, bool stuck);

 private:
  void insert(Request& request, Shape& shape);

  std::map<ShapeKey, Shape, ShapeOrder> shapes_;
  std::map<std::uint64_t, Shape*> by_first_;
  std::size_t loose_ = 0;  // shapes that are not stuck
};

}  // namespace troupe::scheduler
