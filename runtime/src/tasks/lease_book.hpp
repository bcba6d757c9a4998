#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <boost/container/small_vector.hpp>

#include <troupe/errors.hpp>
#include <troupe/options.hpp>

#include "calls/progress.hpp"
#include "ids/ids.hpp"
#include "tasks/withdrawing_queue.hpp"

namespace troupe::tasks {

using runtime::LeaseId;
using runtime::ProcessId;
/// Of what the book asks the head for; made by the book, unique in it.
using AskId = scheduler::StrongId<struct AskTag>;
using TimePoint = std::chrono::steady_clock::time_point;
using runtime::Progress;

struct Lease;
struct Shape;

/// What the book keeps of a task. Who performs the effects derives its own task from it.
///
///   [awaits arguments] --arguments_here--> [queued] --Send--> [sent] --answered--> [over]
///                                              ^--- taken back, not begun, or tries left ---/
///   any of the first two --cancel--> [over]; [sent] --cancel--> taken back first, if it has not begun
struct BookedTask : Queued, std::enable_shared_from_this<BookedTask> {
  enum class Stage : std::uint8_t { AwaitsArguments, Queued, Sent, Over };

  virtual ~BookedTask() = default;

  std::string_view label;     ///< of its function, for messages; static storage
  int tries_left = 0;         ///< after the death of its process
  bool fits_channel = false;  ///< a channel carries it; else it goes through a socket

  // ---- the book's
  Stage stage = Stage::AwaitsArguments;
  bool by_channel = false;     ///< of one that is sent
  bool taking_back = false;    ///< of one that is sent: its callee is asked to give it up
  bool cancel_wanted = false;  ///< by the user
  std::uint32_t deaths = 0;    ///< of processes, while it ran there
  bool stands_alone() const { return deaths > 0; }
  Lease* lease = nullptr;  ///< of one that is sent
  Shape* shape = nullptr;  ///< until it is over
};
using TaskPtr = std::shared_ptr<BookedTask>;

/// The right to have tasks of one shape run in one worker process. Who performs the effects derives
/// its own from it.
///
///   [idle] <-> [busy];  idle for kLinger, or recalled by the head -> given back;  its process ended -> forgotten once the
///   fate of each task in its line is known
struct Lease {
  virtual ~Lease() = default;

  LeaseId id{};
  ProcessId process{};
  bool has_channel = false;

  // ---- the book's
  Shape* shape = nullptr;
  std::deque<TaskPtr> line;                ///< sent and not answered, in order; the first one runs
  bool recalled = false;                   ///< nothing more is sent under it
  bool lost = false;                       ///< its process has ended: nothing is to be given back
  std::optional<TimePoint> idle_since;     ///< as of the first tick that found it idle
  const BookedTask* seen_first = nullptr;  ///< at the last tick
  /// It is still the first: nothing more stands in line behind it.
  bool stuck = false;
};
using LeasePtr = std::unique_ptr<Lease>;

// ---- effects: what is to be done, in the order given --------------------------------------------

/// Why the head does not grant a lease.
enum class Refusal : std::uint8_t {
  Never,          ///< what is asked for can never be had
  ProgramFailed,  ///< a worker process did not start: the program does not run on that node
  /// A worker process ended before it was ready, which says nothing of the next one.
  ProcessFailed,
};

/// The task is the last in the line of its lease. Where it cannot be sent, the answer is lost(...,
/// NotBegun, ...).
struct Send {
  BookedTask* task = nullptr;
};
/// Answered by taken_back() where the task had not begun, by answered() or lost() where it had; a
/// channel that says no is answered by runs_on().
struct TakeBack {
  TaskPtr task;
};
/// The task is over.
struct Fail {
  TaskPtr task;
  Failure how;
};
/// Answered by granted() or refused().
struct Ask {
  AskId ask{};
  const detail::RequestOptions* need = nullptr;  // lives as long as the ask
};
struct Withdraw {
  AskId ask{};
};
struct GiveBack {
  LeaseId lease{};
};
/// For people.
struct Warn {
  std::string text;
};
using Effect = std::variant<Send, TakeBack, Fail, Ask, Withdraw, GiveBack, Warn>;
using Effects = boost::container::small_vector<Effect, 2>;

/// The tasks that a process has submitted, and the leases that it has for them, as a pure state
/// machine: an event goes in, effects come out, no clock, lock, thread or socket. Tasks of one
/// shape (resources, labels) share leases. Where there is a channel to a lease's process, short
/// tasks stand in line there, about two milliseconds of them, so that neither side waits for the
/// other; what stands in line behind a task that takes long, or that waits for others, is taken
/// back and goes elsewhere.
///
/// What it keeps to (check() asserts what is state; tests/runtime/tasks tests all of it against
/// random events):
///   1. A task is in exactly one place: awaiting its arguments, in the queue of its shape, in the line of one lease, or over.
///   2. A task begins at most 1 + tries times: it is sent again only where it had not begun, or for one of its tries.
///   3. A task that had not begun loses no try, and fails only where it was cancelled, its arguments failed, or its shape
///      can never be had.
///   4. Nothing is sent under a lease that is recalled or lost.
///   5. A lease is given back once, with an empty line, and never one that is lost.
///   6. Not more than kMostAsks asks of a shape are open, and none where nothing waits.
///   7. A task that was met by a death stands alone in its line from then on: if it is what ends processes, it takes no
///      other one's result with it, and if it is not, it loses no second try to its neighbour.
///   8. A shape without tasks, leases and asks is forgotten, but for the kIdleShapes that were used last.
///
/// Events marked (turn) may leave something for turn(), which belongs to one thread; wants_turn()
/// says so.
class LeaseBook {
 public:
  /// How long an idle lease is kept for the next task.
  static constexpr std::chrono::milliseconds kLinger{50};
  static constexpr std::size_t kMostAsks = 64;  ///< leases asked for at once, per shape
  /// Of work that stands in line at one lease.
  static constexpr std::chrono::microseconds kLine{2000};
  static constexpr std::size_t kLongestLine = 4096;  ///< in tasks
  /// Of work for which one more lease is worth asking.
  static constexpr std::chrono::milliseconds kShare{5};
  /// How often idle and stuck leases are looked for.
  static constexpr std::chrono::milliseconds kTick{5};
  static constexpr std::size_t kIdleShapes = 64;  ///< whose run time is remembered
  /// Worker processes that did not start, one after the other, before tasks without any lease fail;
  /// the pauses between them double from the first one to the longest.
  static constexpr int kMostFailedStarts = 6;
  static constexpr int kMostFailedPrograms = 3;  ///< where the program is what failed
  static constexpr std::chrono::milliseconds kFirstPause{100};
  static constexpr std::chrono::milliseconds kLongestPause{3200};

  LeaseBook();
  ~LeaseBook();
  LeaseBook(const LeaseBook&) = delete;
  LeaseBook& operator=(const LeaseBook&) = delete;

  // ---- tasks (turn)
  void submit(TaskPtr task, const detail::RequestOptions& need, bool arguments_are_here,
              Effects& effects);
  void arguments_here(const TaskPtr& task, Effects& effects);
  void arguments_failed(const TaskPtr& task, const Failure& how, Effects& effects);
  void cancel(const TaskPtr& task, Effects& effects);
  /// False: it is over already, and whoever answers has nothing to tell.
  bool answered(BookedTask& task, std::chrono::nanoseconds run_time, Effects& effects);
  /// It comes back before it began.
  void taken_back(BookedTask& task, Effects& effects);
  /// It cannot be taken back: it runs.
  void runs_on(BookedTask& task);
  /// Its process has ended, or cannot be reached any more.
  void lost(BookedTask& task, Progress progress, const Failure& how, Effects& effects);

  // ---- leases (turn)
  /// False: nobody waits for it any more, and it is to be given back.
  bool granted(AskId ask, LeasePtr lease);
  /// What waits for the shape fails where it can never be had, or where several starts failed and
  /// no lease is left.
  void refused(AskId ask, Refusal refusal, const Failure& why, TimePoint now, Effects& effects);
  void recalled(LeaseId lease, Effects& effects);
  /// Its process has ended. -> which it was; none: the lease is not ours any more.
  ProcessId lease_lost(LeaseId lease);
  void channel_opened(ProcessId process);

  // ---- time
  /// Sends what goes through sockets, and asks for what is missing or takes it back.
  void turn(TimePoint now, Effects& effects);
  bool wants_turn() const { return !changed_.empty(); }
  /// Every kTick while wants_ticks().
  void tick(TimePoint now, Effects& effects);
  bool wants_ticks() const { return !leases_.empty() || pausing_ > 0; }

  /// The lease, if it is still ours; for who performs.
  Lease* lease(LeaseId id) const;
  /// Calls with each lease.
  template <class F>
  void for_each_lease(F&& with) const {
    for (const auto& [id, lease] : leases_) with(*lease);
  }
  std::size_t shapes() const { return shapes_.size(); }
  /// Asserts the invariants that are of the state. Walks everything.
  void check() const;

 private:
  Shape& shape_of(const detail::RequestOptions& need);
  void changed(Shape& shape);
  void enqueue(TaskPtr task, Effects& effects);
  void requeue(BookedTask& task);
  void fail(BookedTask& task, Failure how, Effects& effects);
  void over(BookedTask& task);
  void fail_queue(Shape& shape, const Failure& why, Effects& effects);
  void fail_for_ever(Shape& shape, const Failure& why, Effects& effects);
  void dispatch(Shape& shape, bool through_sockets, Effects& effects);
  void send(Lease& lease, TaskPtr task, Effects& effects);
  TaskPtr leave_line(BookedTask& task);
  void take_back_line(Lease& lease, Effects& effects);
  void demand(Shape& shape, TimePoint now, Effects& effects);
  void look_for_stuck(Shape& shape, Effects& effects);
  void give_back_idle(Shape& shape, TimePoint now, Effects& effects);
  void drop(Lease& lease);
  void rest(Shape& shape);
  void end_pause(Shape& shape);

  AskId last_ask_{};
  std::map<std::string, std::unique_ptr<Shape>> shapes_;
  Shape* default_shape_ = nullptr;  // of tasks without options, which need no key; never forgotten
  std::vector<Shape*> changed_;     // since the last turn
  std::list<Shape*> idle_;          // the longest idle one first
  std::unordered_map<LeaseId, LeasePtr> leases_;
  std::unordered_map<AskId, Shape*> asks_;
  std::size_t pausing_ = 0;  // shapes that wait before they ask again
};

}  // namespace troupe::tasks
