#pragma once

#include <filesystem>

#include <troupe/trainable.hpp>

namespace troupe::tune {

/// The context of a trainable that does not use `train`: `R f(tune::Context&, const Config&)`. A
/// function that takes train::Context works under tune::run as well. Each rank has one context,
/// which only the thread that runs the function uses.
class Context {
 public:
  /// `member` outlives the context.
  explicit Context(Member& member) : member_{member} {}

  int rank() const { return member_.gang().rank(); }
  int size() const { return member_.gang().size(); }
  GangContext& gang() { return member_.gang(); }

  /// Reports `{{"accuracy", 0.9}}`, and waits for the verdict. On Stop the function should return;
  /// its next report throws. Every rank calls it equally often and gets the same verdict; rank 0's
  /// metrics count. Throws GangBroken if a rank has died.
  Verdict report(const Metrics& metrics) { return member_.report(metrics, {}); }
  /// The same report, with a directory in storage() from which a later attempt, or another trial,
  /// can continue. The directory must be complete when rank 0 reports it: ranks that write parts of
  /// it synchronize before (gang().rendezvous(), or a barrier).
  Verdict report(const Metrics& metrics, const std::filesystem::path& checkpoint) {
    return member_.report(metrics, checkpoint);
  }

  /// This trial's own directory, a new one after each takeover; empty if the run has no storage.
  /// The function creates it if it needs it. It must not change checkpoints in it that it has
  /// reported, because other trials may continue from them.
  const std::filesystem::path& storage() const { return member_.storage(); }
  /// The checkpoint to continue from; empty: begin at the start.
  const std::filesystem::path& restore_from() const { return member_.restore_from(); }
  /// The trial's seed, the same on every rank and in each of its attempts.
  std::uint64_t seed() const { return member_.seed(); }

 private:
  Member& member_;
};

}  // namespace troupe::tune
