#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/detail/search.hpp>

#include "run/launch/known_nodes.hpp"
#include "run/launch/launcher.hpp"
#include "run/launch/slots.hpp"

namespace troupe::tune {

/// A trial in its gang, from the request for it to the end of the last attempt that runs in it. A
/// state machine that never waits: the launcher calls step() whenever something that it waits for
/// has come.
///
///   [Asked] --placed--> [Naming] --the names of its nodes are known--> [Placed]
///
///   [Placed] --> [Looking] --> [Packing] --> [Receiving] --> [Running] --Finished--> [Finishing] --> ended
///     ^  |            |                                         ^  |  |                   |
///     |  |            +---- each rank sees the checkpoint ------+  |  +-- fails, replaced |
///     |  +---- no folder to look for ------------------------------+          |           | replaced
///     |                                                                       v           v
///     +---------------- the next attempt, in the same processes ---------- [Settling] <---+
///
/// An attempt that is told to end, while its function runs, is over once the calls on all ranks have
/// come, whatever they brought: a rank that fails does not cut short what others do at their end.
///
/// Any other failure ends it from anywhere. Used by the search's thread; what it holds of the cluster ends
/// with it.
class GangAttempt {
 public:
  using TimePoint = troupe::detail::RankCalls::TimePoint;

  GangAttempt(TrialId trial, detail::Work work, std::unique_ptr<detail::Workers> workers,
              detail::CheckpointOrigins& origins, KnownNodes& nodes, Slots& slots);
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
  /// Tells the function to end, on all ranks. From then on its reports are answered Stop and are
  /// handed to nobody, and its last event is that of an attempt which the search has ended. -> false:
  /// no function runs that could be told.
  bool tell_to_end();

  /// What is known of its ranks, once it is placed: for signs_in().
  troupe::detail::ObjectPtr ask_for_signs() const;
  const std::vector<Place>& places() const { return places_; }
  /// Of the trial, on its nodes; empty: the run has none.
  const std::filesystem::path& folder() const { return work_.info.storage; }
  bool first_rank_has_returned() const { return stage_ == Stage::Finishing; }
  /// Adds what its gang holds, once it is placed.
  void add_to(InUse& in_use) const;
  /// Whether the function ran on all ranks, and nobody told it to end for another: what happens
  /// from then on is its doing.
  bool begun() const { return run_ && run_->begun() && !next_; }

 private:
  enum class Stage : std::uint8_t {
    Asked,
    Naming,
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
  bool on_naming();
  bool on_placed();
  bool on_looking();
  bool on_packing();
  bool on_receiving();
  bool on_run();
  bool on_settling();
  bool on_told_to_end();
  bool look_at_run();
  /// As the search names what the attempt goes on from; until begin_run, which tells each rank its path.
  const std::string& checkpoint_name() const { return work_.info.restore_from.native(); }
  std::string copies() const;
  void give_up_copies();
  void place();
  void begin_run();
  void say(GangEvent::Kind kind);

  const TrialId trial_;
  detail::Work work_;
  const std::unique_ptr<detail::Workers> workers_;
  detail::CheckpointOrigins& origins_;
  KnownNodes& nodes_;
  Slots& slots_;
  std::vector<Place> places_;  // of its ranks, once it is placed
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
  bool told_to_end_ = false;          // the function runs then
};

}  // namespace troupe::tune
