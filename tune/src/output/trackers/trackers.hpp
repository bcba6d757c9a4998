#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/tune/detail/search.hpp>

#include "output/trackers/tracker.hpp"

namespace troupe::tune {

/// The trackers that a plan asks for. Owned by the run, used by its thread.
class Trackers {
 public:
  using Note = std::function<void(const std::string& notice)>;

  /// `header`: the first line of the run's journal, which outlives this. Throws
  /// std::invalid_argument for options that can not be, before anything is made.
  Trackers(const detail::Plan& plan, const std::string& header);

  /// Whether there are any.
  bool any() const { return !trackers_.empty(); }
  /// Before the first event. `folder`: of the run, whether it is new or not; empty: there is none.
  /// Throws std::runtime_error where files of an earlier driver cannot be taken away.
  void open(const std::filesystem::path& folder);
  /// The run's folder is gone: nothing more is written to new files in it.
  void leave_folder();
  /// What earlier drivers did before a snapshot, whose first `bytes` of reports.jsonl say it.
  void see_before_snapshot(const std::filesystem::path& folder, std::uintmax_t bytes,
                           const std::vector<Trial>& trials);
  /// An event of a driver before this one.
  void see_again(const Event& event, const Trial* trial);
  void see(const Event& event, const Trial* trial);
  void tick(const Note& note);
  void conclude(const Experiment& experiment, Seconds now, const Note& note,
                const Tracker::Say& say);

 private:
  void start(Seconds now);

  const detail::Plan& plan_;
  const std::string& header_;
  std::optional<WallClock> clock_;  // once opened
  bool is_started_ = false;         // this driver's first event was seen
  std::vector<std::unique_ptr<Tracker>> trackers_;
};

}  // namespace troupe::tune
