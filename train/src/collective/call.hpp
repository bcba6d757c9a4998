#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <troupe/gang_context.hpp>
#include <troupe/train/communicator.hpp>

#include "collective/hang_watch.hpp"
#include "collective/roll_call.hpp"

namespace troupe::train {

enum class CallKind : std::uint8_t {
  Start,
  AllReduce,
  Broadcast,
  AllGather,
  ReduceScatter,
  Barrier,
  Allocate,
  AllToAll,
  AllGatherParts,
  Reduce,
  Gather,
  Scatter,
  Split,
  Send,  ///< these two between two ranks
  Recv,
  Leave,
};

/// What a rank says it is about to do. All ranks must say the same.
struct Announcement {
  /// 0, 1, 2, ... over the communicator's collectives, or the messages of two ranks.
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  CallKind kind = CallKind::Start;
  DataType type = DataType::UInt8;
  ReduceOp op = ReduceOp::Sum;
  std::uint8_t unused = 0;
  /// Or the other rank of a Send or Recv; of an AllGatherParts what tells the counts of all ranks
  /// from others with the same sum.
  std::int32_t root = 0;
  friend bool operator==(const Announcement&, const Announcement&) = default;
};

/// "all_reduce of 5 float32 (sum)".
std::string call_in_words(const Announcement& what);
/// "all_reduce of 5 float32 (sum), call 3".
std::string to_string(const Announcement& what);

/// Throws std::invalid_argument naming both ranks and what each called, if they differ.
void check_same(int rank, const Announcement& mine, int peer, const Announcement& theirs);
/// Likewise, unless one is a Send and the other the Recv that fits.
void check_match(int rank, const Announcement& mine, int peer, const Announcement& theirs);

/// What an exception says; empty without one.
std::string text_of(const std::exception_ptr& error);

/// A communicator does one call at a time: who enters while another thread is inside is refused,
/// before anything is sent and with the communicator as it was. Both threads would take part in one
/// step otherwise, and averages could cross.
class Entrance {
 public:
  class [[nodiscard]] Inside {
   public:
    explicit Inside(std::atomic<std::int32_t>& running) : running_(running) {}
    ~Inside() { running_.store(kNobody, std::memory_order_release); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    std::atomic<std::int32_t>& running_;
  };
  /// Throws std::logic_error naming both calls. The other thread has left once Inside has ended.
  Inside enter(int rank, const Announcement& what);
  /// To end the communicator; nothing while another thread is inside.
  std::optional<Inside> enter_to_leave();

 private:
  static constexpr std::int32_t kNobody = -1;
  std::atomic<std::int32_t> running_{kNobody};  // the CallKind of the thread that is inside
};

/// For a rank one of whose calls has failed: "rank 1 left the communicator, as its call failed:
/// std::out_of_range: no such row (in Rank::step, process 7 (pid 4711) on node 2)".
Failure left_by(int rank, const Failure& call);

/// For a rank that leaves its gang without having made the communicator that its options name
/// `name`: those who make it, now or later, throw GangBroken: "rank 1 <why>".
void decline(GangContext& gang, const std::string& name, const std::string& why);

/// What a wait inside a collective looks at: the deadline and the gang's broken word. Asked only
/// when a wait is slow, so the clock of a quick call is never read. One per communicator; used by
/// the thread that makes the call.
class Patience {
 public:
  /// How long a wait sleeps at most before it looks at these again.
  static constexpr std::chrono::milliseconds kSlice{50};

  /// How long a call may wait in all, and before the log says so; 0: it never does.
  struct Limits {
    std::chrono::milliseconds timeout;
    std::chrono::milliseconds warn_after;
  };

  /// `name`: of the communicator, unique in the gang. `sees_all`: who waits knows of every rank
  /// whether it has come, so that no roll need be called.
  Patience(GangContext& gang, Limits limits, const std::string& name, bool sees_all);

  /// The next call begins: its time starts to count at the first expired() or check().
  void begin(const Announcement& what) {
    what_ = what;
    counting_ = false;
    answered_ = false;
    hang_.begin();
  }
  /// What the call that has begun is, now that its number is known.
  void number(const Announcement& what) { what_ = what; }
  /// The call has come to its end, without an error.
  void end() {
    if (hang_.has_told()) say_that_it_went_on();
  }
  const Announcement& what() const { return what_; }

  bool gang_is_broken() const { return gang_.broken().load(std::memory_order_relaxed) != 0; }
  /// Throws GangBroken if the gang is, or if a rank has told the end of what this one cannot see.
  /// -> whether the deadline has passed.
  bool expired();
  /// As expired(), but throws TimedOut at the deadline, and has a call that hangs said in the log.
  /// `missing` -> the ranks that this one waits for, as far as it sees.
  template <class Missing>
  void check(Missing missing) {
    if (expired()) throw_timed_out(missing());
    if (hangs()) note_hang(missing());
  }
  /// Since the last expired(): whether note_hang is due.
  bool hangs() const { return counting_ && hang_.is_due(now_ - since_); }
  void note_hang(const std::vector<int>& missing);
  HangWatch& hang_watch() { return hang_; }
  [[noreturn]] void throw_broken() const;
  /// Throws TimedOut; `missing`: ranks that this one waits for, as far as it sees. Unless it sees
  /// all, the roll is called, since those may only wait for others themselves.
  [[noreturn]] void throw_timed_out(const std::vector<int>& missing);
  /// Throws GangBroken: "<cause> (noticed by rank 0 in all_reduce ..., after 0.3 s)".
  [[noreturn]] void throw_gone(const std::string& cause) const;
  /// The connection to a rank has ended, by errno `error` or, if 0, by its other side. Throws
  /// GangBroken with the reason that ranks of that node have told, if they could.
  [[noreturn]] void throw_hung_up(int rank, int error);

  /// What `rank` sets in the rendezvous. Throws TimedOut naming it, GangBroken.
  std::string await(const std::string& key, int rank);
  /// Tells the ranks of other nodes why this communicator has ended.
  void tell_end(const std::string& why);

  GangContext& gang() const { return gang_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds silence() const;
  /// How long a wait may sleep in the rendezvous before this looks at anything again.
  std::chrono::milliseconds until_next_look() const;
  void say_that_it_went_on();
  bool is_between_two() const {
    return what_.kind == CallKind::Send || what_.kind == CallKind::Recv;
  }
  /// Ranks of other nodes, and with NCCL all others, may leave without that a wait here ends by it.
  bool looks_for_end() const { return what_.kind == CallKind::Start || !sees_all_; }
  /// Throws GangBroken with the reason that a rank has told for the end, if one has within `wait`.
  void check_told_end(std::chrono::milliseconds wait);
  bool calls_roll() const { return !sees_all_ && !is_between_two(); }
  std::string place() const;

  GangContext& gang_;
  const std::chrono::milliseconds timeout_;
  const bool sees_all_;
  RollCall roll_call_;
  HangWatch hang_;
  Announcement what_;
  bool counting_ = false;
  bool answered_ = false;  // the roll call
  Clock::time_point since_;
  Clock::time_point now_;        // of the last expired()
  Clock::time_point next_look_;  // for a rank that has declined, or left
};

}  // namespace troupe::train
