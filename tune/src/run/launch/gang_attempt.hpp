#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/detail/search.hpp>

#include "run/launch/launcher.hpp"

namespace troupe::tune {

/// A trial in its gang, from the request for it to the end of the last attempt that runs in it. A
/// state machine that never waits: the launcher calls step() whenever something that it waits for
/// has come.
///
///   [Asked] --placed--> [Placed] --> [Looking] --> [Packing] --> [Receiving] --> [Running] --Finished--> [Finishing] --> ended
///                          |            |                                         ^  |  |                   |
///                          |            +---- each rank sees the checkpoint ------+  |  +-- fails, replaced |
///                          +---- no folder to look for ------------------------------+          |           | replaced
///                          ^                                                                    v           v
///                          +-------- the next attempt, in the same processes --------------- [Settling] <---+
///
/// A failure ends it from anywhere. Used by the search's thread; what it holds of the cluster ends
/// with it.
class GangAttempt {
 public:
  using TimePoint = troupe::detail::RankCalls::TimePoint;

  GangAttempt(TrialId trial, detail::Work work, std::unique_ptr<detail::Workers> workers,
              detail::CheckpointOrigins& origins);
  ~GangAttempt();
  GangAttempt(const GangAttempt&) = delete;
  GangAttempt& operator=(const GangAttempt&) = delete;

  /// Goes on as far as it can, or to the first thing that the search is to hear of. -> that; none:
  /// it waits. Throws what the trial failed with.
  std::optional<GangEvent> step();
  /// Adds what step() waits for.
  void collect(std::vector<troupe::detail::ObjectPtr>& objects) const;
  /// When step() has something to do though nothing comes.
  std::optional<TimePoint> look_again() const;

  void answer(Verdict verdict);
  /// Tells the attempt that waits with a report to end, and begins `next` in its processes as soon
  /// as it has.
  void replace(detail::Work next);

  /// Whether the function ran on all ranks, and nobody told it to end for another: what happens
  /// from then on is its doing.
  bool begun() const { return run_ && run_->begun() && !next_; }

 private:
  enum class Stage : std::uint8_t {
    Asked,
    Placed,
    Looking,
    Packing,
    Receiving,
    Running,
    Finishing,
    Settling
  };

  bool advance();
  bool on_asked();
  bool on_placed();
  bool on_looking();
  bool on_packing();
  bool on_receiving();
  bool on_run();
  bool on_settling();
  bool look_at_run();
  void place();
  void begin_run();
  void say(GangEvent::Kind kind);

  const TrialId trial_;
  detail::Work work_;
  const std::unique_ptr<detail::Workers> workers_;
  detail::CheckpointOrigins& origins_;
  Stage stage_ = Stage::Asked;
  std::optional<GangEvent> event_;  // for the search
  bool fresh_ = true;               // the workers were made for this attempt

  // Of one attempt.
  Ref<void> placed_;
  troupe::detail::RankCalls calls_;  // of Looking and Receiving
  std::vector<Ref<troupe::detail::Surroundings>> looks_;
  detail::GangView view_;
  detail::CheckpointPlan checkpoint_;
  Ref<detail::PackedFolder> packed_;
  std::unique_ptr<troupe::detail::RunProgress> run_;
  bool returned_ = false;             // rank 0's function, with a value
  std::optional<detail::Work> next_;  // what replaces it
};

}  // namespace troupe::tune
