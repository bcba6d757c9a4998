#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <vector>

#include <troupe/tune/trial.hpp>

namespace troupe::tune {

/// Seconds since 1970, as trackers have them.
using WallTime = std::chrono::sys_time<Seconds>;

/// When a run's events happened. The journal has seconds in which the run was under way; a run that
/// was interrupted and taken up again stood still in between. The file `clock.jsonl` of the run's
/// folder has a line for each driver, so that an event has the same time whenever it is looked at.
/// Used by the search's thread.
class WallClock {
 public:
  /// The drivers before this one, from the run's folder. Empty: there is no folder. Of a driver
  /// that left no line, the time at which `params.json` was written counts.
  explicit WallClock(std::filesystem::path folder);

  /// This driver's first event is `now`, and it is `wall` o'clock. Where the line cannot be
  /// written, only a later driver misses it.
  void start(Seconds now, WallTime wall);
  WallTime at(Seconds now) const;
  /// Of drivers that were started, this one too.
  std::size_t drivers() const { return parts_.size(); }

 private:
  struct Part {
    Seconds from{0};
    WallTime wall{};
  };

  std::filesystem::path folder_;
  WallTime begin_;  // of the run, where no driver left a line
  std::vector<Part> parts_;
};

}  // namespace troupe::tune
