#pragma once

#include <string>

#include <troupe/trainable.hpp>

namespace troupe::tune {

/// What a trainable that is no training run is given: `R f(tune::Context&, const Config&)`. A
/// training run takes train::Context and works under tune::run as well. Used by the one thread that
/// runs the function, one per rank.
class Context {
 public:
  /// `member` outlives the context.
  explicit Context(Member& member) : member_{member} {}

  int rank() const { return member_.gang().rank(); }
  int size() const { return member_.gang().size(); }
  GangContext& gang() { return member_.gang(); }

  /// Reports `{{"accuracy", 0.9}}`, and waits for the verdict: on Stop the function should return;
  /// the next report would throw it out. Every rank calls it equally often and gets the same
  /// verdict; rank 0's metrics count. Throws GangBroken if a rank has died.
  Verdict report(const Metrics& metrics) { return member_.report(metrics, {}); }
  /// The same report, with a directory in storage() that a later attempt, or another trial, can go
  /// on from. It is whole when rank 0 reports it: ranks that write parts of it agree on that before
  /// (gang().rendezvous(), or a barrier).
  Verdict report(const Metrics& metrics, const std::string& checkpoint) {
    return member_.report(metrics, checkpoint);
  }

  /// A directory of this trial's own, another one after each takeover; empty if the run has no
  /// storage. The function makes it if it needs it, and leaves the checkpoints in it that it has
  /// reported as they are: others may go on from them.
  const std::string& storage() const { return member_.storage(); }
  /// The checkpoint to go on from; empty: from the start.
  const std::string& restore_from() const { return member_.restore_from(); }
  /// Of the trial, the same on every rank and in each of its attempts.
  std::uint64_t seed() const { return member_.seed(); }

 private:
  Member& member_;
};

}  // namespace troupe::tune
