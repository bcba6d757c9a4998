#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/tune/detail/simulate.hpp>
#include <troupe/tune/results.hpp>

#include "sweep/file/sweep_file.hpp"

namespace troupe::launch {

/// Runs the sweep in the session of this process, every trial a gang of programs. Ctrl-C ends it,
/// once the programs that run have had SIGTERM and their grace. Shows trials as tune::run does. Throws
/// what tune::run throws.
tune::detail::Outcome run_sweep(const SweepFile& sweep);
/// Goes on with an earlier run of it, in `folder`; empty: with the last one in its storage.
tune::detail::Outcome resume_sweep(const SweepFile& sweep, const std::string& folder);

/// What the sweep would run, without running it: the commands of its first trials, as its searcher
/// suggests them while none has reported.
std::vector<std::string> first_commands(const SweepFile& sweep, std::size_t count);

/// Throws what run_sweep would for a sweep that can never be run, or not from here. Leaves nothing
/// behind.
void check_runs(const SweepFile& sweep);

/// What the sweep names that is not on this machine, "FILE:LINE:COLUMN: WHY" each.
struct NotHere {
  std::string
      workdir;  ///< without which it cannot be run from here; empty: it is there, or none is named
  std::string program;  ///< that other nodes may have; empty: it is there
};
NotHere not_here(const SweepFile& sweep);

struct SweepPreview {
  /// How many trials reach each rung, and the end; empty: the scheduler has no rungs.
  std::vector<tune::detail::Reached> reached;
  std::size_t trials = 0;               ///< that were simulated
  std::uint64_t asked = 0;              ///< trials of the sweep, which may be more
  std::uint64_t reports = 0;            ///< of the trials that were simulated
  std::uint64_t reports_unstopped = 0;  ///< if each trial came as far as the furthest
  std::size_t places = 0;               ///< trials that run at a time
  double busy = 0;                      ///< part of the places' time in which a trial ran, 0 to 1
  /// Keys of the sweep that depend on values or on real time, and were not simulated.
  std::vector<std::string> ignored;
};
/// What the sweep's scheduler would do, in virtual time, with learning curves that fall as 1/t to an
/// end of each configuration's own. Simulates at most 1000 trials, with random configurations: the
/// time that a preview takes depends neither on the size of the sweep nor on its searcher. No
/// criterion ends a trial or the run by a made-up value or time.
SweepPreview preview(const SweepFile& sweep);

}  // namespace troupe::launch
