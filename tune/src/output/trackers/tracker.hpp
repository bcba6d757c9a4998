#pragma once

#include <functional>
#include <string>
#include <vector>

#include <troupe/tune/experiment.hpp>

#include "output/trackers/wall_clock.hpp"

namespace troupe::tune {

/// A program beside Troupe in which people look at runs: TensorBoard, MLflow. It is told what
/// happens, decides nothing, and never holds the search up. Used by the search's thread.
class Tracker {
 public:
  /// What people should know, a sentence each.
  using Notices = std::vector<std::string>;

  virtual ~Tracker() = default;
  /// An event of a trial, in the journal's order. A run that goes on begins with those of the
  /// drivers before: the tracker finds out which of them it has.
  virtual void see(const Event& event, const Trial& trial, WallTime wall) = 0;
  /// Called after each event and at least every 250 ms; does not wait for anything.
  virtual Notices tick() = 0;
  /// The run is over. May wait, for a time that has a limit.
  /// `say` is told what is waited for; empty: nobody is.
  using Say = std::function<void(const std::string&)>;
  virtual Notices conclude(const Experiment& experiment, WallTime wall, const Say& say) = 0;
};

}  // namespace troupe::tune
