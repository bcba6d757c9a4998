#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/tune/space.hpp>

#include "output/append_file.hpp"
#include "output/trackers/tracker.hpp"

namespace troupe::tune {

/// The event files by which TensorBoard shows a run, in the folder `tensorboard` of the run's:
///
///   events.out.tfevents.TIME.DRIVER           the experiment for the HPARAMS tab, with the first
///                                             report: fields, domains, metrics
///   trial-N/events.out.tfevents.TIME.DRIVER   a TensorBoard run: the trial's configuration, a
///                                             scalar for each metric of each report, its end
///
/// A run that goes on has its files written anew from the journal, under a later name: each begins
/// with a restart at step 0, so that a TensorBoard that reads along forgets what it read before. A
/// trial that takes over another goes on with the donor's t: a restart there makes a reader forget
/// the trial's own reports from that t on. Used by the search's thread; files are open while their
/// trial is in flight.
class EventFiles final : public Tracker {
 public:
  /// Of all files together, what waits in memory for room on the disk.
  static constexpr std::size_t kMostKept = AppendFile::kMostKept;

  struct Run {
    std::filesystem::path folder = {};
    std::string title = {};
    std::size_t driver = 1;  ///< drivers that this run has had, this one too
    WallTime began = {};     ///< of this driver
  };
  /// Takes away the event files of drivers before this one. Throws std::runtime_error where it
  /// cannot.
  EventFiles(Run run, SearchSpace space, Objective objective);

  void see(const Event& event, const Trial& trial, WallTime wall) override;
  Notices tick() override;
  Notices conclude(const Experiment& experiment, WallTime wall, const Say& say) override;

 private:
  /// One file, made with its first record.
  struct File {
    std::filesystem::path path = {};
    std::optional<AppendFile> file = {};
    std::string waiting = {};  ///< while it could not be made
    std::string trouble = {};

    /// -> all is written.
    bool flush();
    std::size_t kept() const { return waiting.size() + (file ? file->kept().size() : 0); }
  };
  using Name = std::string;  ///< of a folder below the run's; empty: that itself

  void begin(const Trial& trial, WallTime wall);
  void end(const Trial& trial, WallTime wall);
  void describe_experiment(const Metrics& metrics, WallTime wall);
  void append(const Name& name, std::string_view record, WallTime wall);
  void close(const Name& name);
  bool has_room_for(std::string_view record);

  Run run_;
  SearchSpace space_;
  Objective objective_;
  std::map<Name, File> files_;  // that are open or not whole
  std::set<Name> made_;         // that have their first records
  std::set<Name> behind_;       // that are not whole
  std::set<TrialId> ended_;
  std::map<TrialId, std::size_t> takeovers_;  // of the trial's last launch
  bool is_described_ = false;
  bool is_overflown_ = false;  // from then on nothing more is written
  std::string trouble_;        // when tick() looked last
};

}  // namespace troupe::tune
