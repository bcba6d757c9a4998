#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include <troupe/errors.hpp>

namespace troupe::runtime {

/// One life of an actor as one caller sees it: which of the caller's calls may leave, and which are
/// over. Pure: events in, effects out, no clock, no socket; Actors performs the effects in their
/// order.
///
///   [asked for] --on_placed--> [reachable] --on_death--> [dead]
///
/// A call is numbered by who adds it, from 1, one after the other. Between events these hold:
/// 1. Calls are sent in the order in which they were added.
/// 2. A call is sent or ended, once; until then it is queued.
/// 3. Nothing is sent before the actor is placed, and nothing once it is dead.
/// 4. What stands first in a reachable actor's queue waits for its arguments: nothing that may
///    leave stays.
/// 5. The queue of a dead actor is empty.
class Incarnation {
 public:
  using Number = std::uint64_t;
  /// The call leaves for the actor's process.
  struct Send {
    Number call = 0;
  };
  /// The call will not be made, for this reason.
  struct End {
    Number call = 0;
    Failure why;
  };
  using Effect = std::variant<Send, End>;
  using Effects = std::vector<Effect>;

  /// A call, whose arguments are not known to be here; `call` is one more than the last.
  [[nodiscard]] Effects on_call(Number call);
  /// The arguments of a call are here.
  [[nodiscard]] Effects on_resolved(Number call);
  /// An argument of a call has failed. Without its constructor's arguments an actor never lives.
  [[nodiscard]] Effects on_argument_failed(Number call, const Failure& why, bool is_constructor);
  /// No effect on a call that has left.
  [[nodiscard]] Effects on_cancelled(Number call, const Failure& why);
  /// Its process is known. No effect on a dead one.
  [[nodiscard]] Effects on_placed();
  /// The first death counts.
  [[nodiscard]] Effects on_death(const Failure& why);

  bool is_placed() const { return placed_; }
  /// nullopt: it lives, or is to come.
  const std::optional<Failure>& death() const { return death_; }
  std::size_t queued() const { return queued_; }

 private:
  enum class Stage : std::uint8_t { Waiting, Resolved, Over };
  Stage* find(Number call);
  bool is_queued(Number call);
  void end(Number call, const Failure& why, Effects& effects);
  void send_what_may_leave(Effects& effects);

  std::deque<Stage> calls_;  // from first_ on; what is over is dropped once it stands first
  Number first_ = 1;
  std::size_t queued_ = 0;
  bool placed_ = false;
  std::optional<Failure> death_;
};

}  // namespace troupe::runtime
