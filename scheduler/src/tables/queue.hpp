#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <boost/unordered/unordered_map.hpp>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// Where a job's requests stand among others: by what the job has had (nothing, where its turn is
/// overdue), then by arrival.
struct Place {
  std::uint32_t rank = 0;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct ByFirst {
  bool operator()(const auto& a, const auto& b) const { return a.earliest < b.earliest; }
};
/// Lines of a job by their first requests; jobs and shapes by the ranks of the jobs, and then by
/// their first requests.
template <class Record>
using Order =
    boost::intrusive::set<Record, boost::intrusive::member_hook<Record, Turn, &Record::turn>,
                          boost::intrusive::compare<ByFirst>>;

/// The lines of one shape and one job.
struct JobLines {
  JobId job{};
  const Job* of = nullptr;
  Order<Line> lines;
  Place earliest;        ///< of the first line
  std::size_t size = 0;  ///< the requests in all lines
  TimePoint served{};    ///< when the last one was given what it asked for, if others waited then
  /// Its turn is overdue: it stands where a job does that has had nothing.
  bool is_overdue = false;
  Turn turn;

  Request& first() { return lines.begin()->first(); }
  const Request& first() const { return lines.begin()->first(); }
  Place place_of(std::uint64_t sequence) const;
};

/// The waiting requests of one shape. Its maps are never walked through where an order shows.
struct Shape {
  ShapePtr key;
  boost::unordered_map<ProcessId, Line> lines;  ///< by requester
  boost::unordered_map<JobId, JobLines> jobs;   ///< the same by job
  Order<JobLines> order;
  Place earliest;  ///< of the first job
  Turn turn;
  std::size_t size = 0;                    ///< the requests in all lines
  bool stuck = false;                      ///< its first fits no node that was not touched since
  bool possible = true;                    ///< the nodes could hold it with nothing else on them
  std::optional<TimePoint> bounded_since;  ///< only the bound on lease processes has kept it since

  Request& first() { return order.begin()->first(); }
  const Request& first() const { return order.begin()->first(); }
  /// The first one of the job; nullptr if it has none.
  Request* first_of(JobId job);
  /// By arrival; a copy, as requests that are answered leave.
  std::vector<Request*> everyone();
};

/// Who waits, by shape, job, requester and arrival. A shape, or a line of it, is here while a
/// request of it waits. Cost: O(log shapes + log jobs + log requesters of the job), and for one
/// that comes back to its old place as many as have come back before it.
class Queue {
 public:
  /// In no order that may show.
  using Shapes = boost::unordered_map<ShapeKey, Shape, ShapeHash, SameShape>;

  /// A shape is made where it is new; a request must be added to it then. `known`: its record, if
  /// there is one already.
  Shape& shape_for(const ShapeView& wanted, ShapePtr known = {});
  void add(Request& request, Shape& shape);
  /// To a line of its requester.
  void add(Request& request, Line& line);
  void remove(Request& request);
  /// Removes it, as it has got what it asked for: its job's turn is not overdue any more. -> whether
  /// it was.
  bool serve(Request& request, TimePoint now);
  /// -> whether that is new. Cost: O(log jobs + log shapes).
  bool set_overdue(JobLines& lines, Shape& shape, bool overdue);
  /// The requester's line of that shape, if it is one of its first few: mostly it asks again for
  /// what it waits for.
  static Line* line_of(Process& requester, const ShapeView& wanted);
  Shape* find(const ShapeView& wanted);
  const Shape* find(const ShapeView& wanted) const;

  /// By their first requests. nullptr: there is none, or no further one.
  Shape* first();
  Shape* next(Shape& shape);
  /// The shape whose first request is the first of those from `place` on; nullptr if there is none.
  Shape* first_from(Place place);
  /// The job's rank has changed. Cost: O(shapes).
  void settle(const Job& job);
  /// All, by their first request; the pointers live until the queue changes.
  std::vector<Shape*> shapes();
  const Shapes& by_key() const { return shapes_; }

  bool has_loose() const { return loose_ > 0; }
  /// Whether somebody waits who needs nothing, and so may fit on a full node.
  bool has_needless() const { return needless_ > 0; }
  void set_stuck(Shape& shape, bool stuck) {
    if (shape.stuck == stuck) return;
    shape.stuck = stuck;
    stuck ? --loose_ : ++loose_;
  }

 private:
  Line& line_for(const Request& request, Shape& shape);
  /// The first request of the line or the job has changed, and with it the place in the orders that
  /// it determines.
  void settle_in(Line& line);
  void settle_in(JobLines& job, Shape& shape);
  /// Nobody waits in it any more.
  void leave(Line& line);
  void leave(JobLines& job, Shape& shape);
  void leave(Shape& shape);

  Shapes shapes_;
  Order<Shape> by_first_;
  std::size_t loose_ = 0;     // shapes that are not stuck
  std::size_t needless_ = 0;  // shapes that need nothing
};

}  // namespace troupe::scheduler
