#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/tune/detail/search.hpp>

#include "output/display.hpp"
#include "output/folder/params.hpp"
#include "output/folder/run_folder.hpp"
#include "output/html/html_report.hpp"
#include "output/html/run_record.hpp"
#include "output/report_files.hpp"
#include "output/trackers/trackers.hpp"
#include "run/checkpoints/checkpoint_keeper.hpp"
#include "run/checkpoints/checkpoint_names.hpp"
#include "run/checkpoints/tidying.hpp"
#include "run/earlier/resume.hpp"

namespace troupe::tune::detail {

/// A run's files and display: everything that happens outside the experiment and its gangs.
class Witness {
 public:
  /// Begins a run's folder, or resumes the run of an earlier one: then `experiment`, which has no events yet,
  /// comes to where that run was. Throws std::runtime_error for a folder that cannot be used, and
  /// std::invalid_argument, with what differs, where it is of another search.
  Witness(const Plan& plan, Experiment& experiment);
  ~Witness();

  /// Of a run that was resumed, once the experiment has taken back what was under way: says and keeps
  /// in which fields that are not searched the attempts that follow differ from those before. Throws
  /// std::runtime_error where that can not be written.
  void go_on_with_config(const Plan& plan);
  void see(const Event& event, const Trial* trial);
  /// What it has seen is in the journal.
  void keep() {
    if (files_) files_->keep();
  }
  void tick(Seconds now);
  void note(const std::string& notice, Seconds now);
  /// As Display::set_in_use; what `in_use` refers to lives until the last tick().
  void show_in_use(std::function<std::optional<InUse>()> in_use) {
    display_.set_in_use(std::move(in_use));
  }
  /// As Tidying::set_copies; what `spare` refers to lives until conclude() has returned.
  void delete_copies(std::function<std::vector<std::string>()> spare) {
    tidying_.set_copies(std::move(spare));
  }
  /// Of what is waited for: shown, and not kept.
  void say(const std::string& what, Seconds now) { display_.say(what, now); }
  /// A file that only who shares the run's folder sees; empty: there is no folder.
  const std::filesystem::path& marker() const { return marker_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  const CheckpointNames& names() const { return names_; }
  /// Where trials that are launched now write: the run's folder, or one beside it where that is
  /// gone.
  std::filesystem::path folder_of_trials(Seconds now);
  /// Until which the run had gone on before; 0: it is new.
  Seconds already() const { return already_; }
  Outcome conclude(Seconds now);
  /// In place of conclude(): of a new run of which no trial has started the folder is removed, so that
  /// nobody takes it for one with results.
  void leave_nothing();

 private:
  /// What a run that is resumed was before.
  struct Before {
    RunParams params;
    bool had_fewer_trials = false;
  };

  void use_folder(RunFolder folder, const Plan& plan);
  void resume(const Plan& plan, Experiment& experiment);
  void see_again(const ResumedRun& run, Experiment& experiment);
  void take_snapshot(Seconds now);
  void look_at_folder(Seconds now);
  void look_at_files(Seconds now);
  void write_summary(Seconds now);
  void write_report(Seconds now, const PageState& page);
  void show_under_way(Seconds now);
  std::string how_to_go_on() const;

  const Experiment& experiment_;
  const SearchSpace space_;
  RunRecord record_;
  Display display_;
  RunFolder folder_;
  CheckpointNames names_;
  std::optional<ReportFiles> files_;
  std::optional<CheckpointKeeper> keeper_;
  Tidying tidying_;
  std::filesystem::path marker_;
  std::filesystem::path elsewhere_;  // of trials, once the run's folder is gone
  std::string header_;               // of the journal
  std::string sweep_file_;           // as the plan has it, as the next
  std::filesystem::path storage_;
  std::uint64_t events_ = 0;  // of the run, seen so far
  const std::uintmax_t snapshot_after_;
  std::uintmax_t snapshot_at_;  // bytes of the journal
  const Seconds report_every_;
  Seconds report_at_{0};  // the next one of a run that is under way
  Seconds report_took_{0};
  std::uint64_t reported_events_ = 0;
  int reports_left_out_ = 0;  // as nothing had happened since the one before
  Trackers trackers_;
  Seconds already_{0};
  Seconds looked_at_{-1};
  std::optional<Before> before_;  // empty: the run was not resumed
  std::vector<EarlierConfig> earlier_configs_;
  std::string trouble_;  // with the files, when they were looked at last
  std::vector<std::string> notices_;
};

}  // namespace troupe::tune::detail
