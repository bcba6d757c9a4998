#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <troupe/detail/archive.hpp>
#include <troupe/trainable.hpp>

namespace troupe {
template <>
struct EnumRange<Verdict> {
  static constexpr auto first = Verdict::Continue;
  static constexpr auto last = Verdict::Stop;
};
}  // namespace troupe

namespace troupe::detail {

/// What the ranks of one run of a trainable are told.
struct RunInfo {
  std::filesystem::path storage = {};       ///< directory for checkpoints; empty: none
  std::filesystem::path restore_from = {};  ///< checkpoint to go on from; empty: start anew
  std::string name = {};                    ///< of the run or the trial, for people
  std::uint64_t seed = 0;
  bool reconfigured = false;  ///< the checkpoint was written with another configuration
  ContextSettings settings = {};
  /// How often the driver wants to know at most how far the function is; 0: never, and then nothing
  /// is counted, kept or sent for it.
  std::chrono::milliseconds progress_every{0};
  int debugger_rank = -1;  ///< which waits for a debugger before its function begins; -1: none
  std::chrono::milliseconds debugger_wait = {};  ///< at most so long
};

/// What rank 0 has to say next. A value that crosses to the driver.
struct TrialEvent {
  enum class Kind : std::uint8_t { Report, Finished, Progress };
  Kind kind = Kind::Report;
  std::uint64_t index = 0;  ///< of a report, from 0; when finished, how many there were
  Metrics metrics = {};
  std::filesystem::path checkpoint = {};  ///< directory; empty: none
  double elapsed_s = 0;                   ///< since the function began on rank 0
  bool stopped = false;                   ///< finished: after a Stop
  /// Finished: with a value; false where it had to be thrown out of a report after the Stop.
  bool returned = false;
  std::int64_t effective_batch = 0;  ///< finished: as Member was told; 0: it was not
  /// Where it was asked for: what the function told since the last event. Of an event of any kind;
  /// of one of kind Progress it is all there is, and no verdict is waited for.
  std::optional<TrainingProgress> progress = {};
};

/// Thrown by `report` into a function that goes on after Stop. No std::exception, so that a catch
/// clause for those lets it pass.
struct Stopped {};

/// One rank of a trainable between two threads: that of the function, which reports, and the
/// actor's, whose calls come from the driver. One per rank and run. All methods are the actor's
/// thread's; the function sees a Member.
///
/// While it is [running], next() may also hand out how far the function is (Kind::Progress), which
/// changes no state: the function leaves what it tells in one place, over what it told before, and
/// goes on.
///
///   [new] --start--> [running] --report--> [reported] --next hands it out--> [judging] --next(verdict)--> [running]
///                        |---------------- function returns or throws ----------------> [ended]
///
/// Rank 0's report waits for the verdict and publishes it to the other ranks, whose reports wait
/// for that. Every wait ends as soon as the gang is broken, and has no other deadline: how long a
/// step or a driver's judgement takes is theirs to say.
class TrialSession {
 public:
  /// `gang` outlives the function. `run` numbers the runs that follow one another in the gang, from
  /// 1, and is the same on every rank. A later run than the first meets no key of the rendezvous
  /// that an earlier one has set: its function sees a gang that puts "run <number>/" before each
  /// key.
  TrialSession(GangContext& gang, RunInfo info, std::uint32_t run = 1);
  TrialSession(const TrialSession&) = delete;
  TrialSession& operator=(const TrialSession&) = delete;
  /// Waits up to three seconds for the function to leave its next report; one that does not is left
  /// to the end of its process.
  ~TrialSession();

  /// Runs `body` on a thread of its own. Once. `name`: of the user's function, for errors; static
  /// storage.
  void start(std::string_view name, std::function<void(Member&)> body);
  /// Rank 0: hands the verdict on the last report to the function, and waits for its next report or
  /// its end, or, where RunInfo::progress_every asks for it, for what it tells of its progress.
  /// Throws what the function threw, GangBroken, or std::logic_error where a verdict is
  /// missing or was not asked for.
  TrialEvent next(std::optional<Verdict> verdict);
  /// Waits until the function has ended. Throws what it threw, or GangBroken.
  void finish();

 private:
  class Core;
  std::shared_ptr<Core> core_;  // shared with the function's thread, which may outlive this
  std::thread thread_;
};

}  // namespace troupe::detail

template <>
struct troupe::EnumRange<troupe::detail::TrialEvent::Kind> {
  static constexpr auto first = troupe::detail::TrialEvent::Kind::Report;
  static constexpr auto last = troupe::detail::TrialEvent::Kind::Progress;
};
