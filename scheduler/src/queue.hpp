#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_map.hpp>

#include "model.hpp"

namespace troupe::scheduler {

/// A place in an order by the first request.
using Turn = boost::intrusive::set_member_hook<>;
struct ByFirst {
  bool operator()(const auto& a, const auto& b) const { return a.first().sequence < b.first().sequence; }
};
/// Lines or shapes, by their first requests. Who is in it leaves before its first request changes.
template <class Record, Turn Record::*kTurn>
using Order = boost::intrusive::set<Record, boost::intrusive::member_hook<Record, Turn, kTurn>,
                                    boost::intrusive::compare<ByFirst>>;

struct Shape;

/// The waiting requests of one shape and one job, by arrival.
struct Line {
  Shape* shape = nullptr;
  JobId job = 0;
  Chain<Request, &Request::in_line> waiting;
  Turn turn;

  Request& first() { return waiting.front(); }
  const Request& first() const { return waiting.front(); }
};

/// The waiting requests of one shape.
struct Shape {
  ShapePtr key;
  boost::unordered_map<JobId, Line> lines;  ///< of each job that waits for it; never walked through
  Order<Line, &Line::turn> order;           ///< of them
  Turn turn;
  std::size_t size = 0;                                          ///< the requests in all lines
  boost::unordered_flat_map<ProcessId, std::size_t> requesters;  ///< how many of them are whose; never walked through
  bool stuck = false;                                            ///< its first fits no node that was not touched since
  bool possible = true;                                          ///< the nodes could hold it with nothing else on them
  std::optional<TimePoint> bounded_since;  ///< only the bound on lease processes has kept it since

  Request& first() { return order.begin()->first(); }
  const Request& first() const { return order.begin()->first(); }
  /// The first one of the job; nullptr if it has none.
  Request* first_of(JobId job);
  /// By arrival; a copy, as requests that are answered leave.
  std::vector<Request*> everyone();
};

/// Who waits, by shape, job and arrival. A shape is here while a request of it waits. Cost: O(log shapes + log jobs), and
/// for one that comes back to its old place as many as have come back before it.
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
  std::map<ShapeKey, Shape, ShapeOrder> shapes_;
  Order<Shape, &Shape::turn> by_first_;
  std::size_t loose_ = 0;  // shapes that are not stuck
};

}  // namespace troupe::scheduler
