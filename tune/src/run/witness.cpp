#include "run/witness.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>

#include <unistd.h>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "output/folder/earlier_run.hpp"
#include "output/html/html_report.hpp"
#include "output/overview.hpp"
#include "run/earlier/resume_words.hpp"
#include "run/earlier/runs_here.hpp"
#include "run/prepare.hpp"
#include "run/sweep_words.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

/// At the files, where event follows event: one write has the lines of many reports.
constexpr Seconds kBetweenLooks{0.01};
constexpr auto* kMarker = ".seen-";
constexpr double kReportShare = 100;  // of the time in which none is written
constexpr int kReportsUnchanged = 6;  // left out, so that readers see that somebody runs the search

/// `header`: of the journal.
RunParams params_of(const Plan& plan, const std::string& header) {
  auto search = parse(header, "a header");
  search["space"] = to_json(plan.space);
  search["workers"] = plan.workers;
  search["max_concurrent"] = plan.max_concurrent;
  search["time_budget_ms"] = plan.time_budget.count();
  return {std::move(search), plan.unsearched};
}

Display display_of(Show show) {
  if (show == Show::None) return {Display::Kind::None, STDERR_FILENO, false};
  if (show == Show::Lines) return {Display::Kind::Lines, STDERR_FILENO, false};
  return Display::for_descriptor(STDERR_FILENO);
}

/// Of drivers that were killed. Their run is held by this one.
void remove_markers(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> markers;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kMarker)) markers.push_back(entry.path());
  }
  std::error_code ignored;
  for (const auto& marker : markers) std::filesystem::remove(marker, ignored);
}

}  // namespace

Witness::Witness(const Plan& plan, Experiment& experiment)
    : experiment_{experiment},
      space_{plan.space},
      display_{display_of(plan.show)},
      header_{journal_header(experiment)},
      sweep_file_{plan.sweep_file},
      storage_{plan.storage},
      snapshot_after_{plan.snapshot_after},
      snapshot_at_{snapshot_after_},
      report_every_{plan.report_every},
      trackers_{plan, header_} {
  if (!plan.is_sized) display_.set_ranks(plan.workers);
  for (const auto& warning : forewarnings(plan, experiment.searcher()))
    note(in_words_of(plan, warning), already_);
  const auto earlier = run_to_resume(plan, experiment, header_);
  if (!earlier.notice.empty()) note(earlier.notice, already_);
  if (!earlier.folder.empty()) {
    use_folder(RunFolder::hold(earlier.folder), plan);
    resume(plan, experiment);
  } else if (!plan.storage.empty()) {
    use_folder(RunFolder::make(spelled(plan.storage)), plan);
    files_ = ReportFiles::begin(folder(), plan.space, params_of(plan, header_), header_);
    trackers_.open(folder());
    if (!earlier.over.empty())
      note(not_gone_on_with(earlier.over, folder(), experiment.scheduler().needs().counts_trials),
           already_);
  } else {
    trackers_.open({});
    return;
  }
  report_at_ = already_ + report_every_;
  add_run_of_this_process(folder());
  remove_markers(folder());
  marker_ =
      folder() / fmt::format("{}{:016x}", kMarker, std::random_device()() * 0x9e3779b97f4a7c15u);
  AppendFile{marker_};
}

Witness::~Witness() {
  std::error_code ignored;
  if (!marker_.empty()) std::filesystem::remove(marker_, ignored);
}

void Witness::use_folder(RunFolder held, const Plan& plan) {
  folder_ = std::move(held);
  names_ = CheckpointNames(folder());
  keeper_.emplace(folder(), plan.objective, plan.keep_checkpoints);
}

void Witness::resume(const Plan& plan, Experiment& experiment) {
  auto run = resume_run(plan, folder(), header_, experiment, record_, *keeper_);
  if (const auto damage = damage_of_summary(folder()); !damage.empty())
    note(damage + ". The run goes by its journal, and writes the file anew at its end", already_);
  before_ = {RunParams::in(folder()), run.has_more};
  already_ = run.known.now;
  if (const auto more = give_more_trials(run, folder(), header_); !more.empty())
    note(more, already_);
  const auto& known = run.known;
  files_ = ReportFiles::go_on(folder(), plan.space, {run.journal.size(), run.events()}, known.files,
                              experiment.trials());
  if (run.lacks_events()) files_->begin_journal(header_, known.events);
  trackers_.open(folder());
  trackers_.see_before_snapshot(folder(), known.files.line_bytes, experiment.trials());
  see_again(run, experiment);
  for (const auto& name : files_->shortened()) {
    note(fmt::format("{} lacks reports that it had: somebody shortened it. The search goes on with "
                     "all of them",
                     (folder() / name).string()),
         already_);
  }
  note(how_it_is_resumed(experiment, folder(), already_), already_);
}

/// The events that the snapshot does not know.
void Witness::see_again(const ResumedRun& run, Experiment& experiment) {
  events_ = run.known.events;
  const auto see = [&](const Event& event, const Trial* trial) {
    files_->write_again(event, trial);
    keeper_->see(event, trial);
    record_.see(event, trial);
    trackers_.see_again(event, trial);
    already_ = event.now;
    ++events_;
  };
  apply_events(run.journal, experiment, see, run.known.events);
}

void Witness::go_on_with_config(const Plan& plan) {
  if (!before_) return;
  auto params = params_of(plan, header_);
  const auto changes = params.go_on_from(before_->params, experiment_.trials());
  earlier_configs_ = params.earlier_configs();
  const bool is_changed =
      !changes.empty() && !is_over(experiment_, overview_of(experiment_, already_, 0));
  if (!is_changed && !before_->had_fewer_trials) return;
  for (const auto& change : changes) note(change, already_);
  params.write(folder(), Sync::Yes);
}

void Witness::see(const Event& event, const Trial* trial) {
  ++events_;
  // Trackers make new files as trials report and end.
  if (files_ && trackers_.any() && folder_.was_removed()) look_at_folder(event.now);
  if (files_) files_->write(event, trial);
  if (keeper_) keeper_->see(event, trial);
  if (files_) record_.see(event, trial);
  // People are told of a failure at once: whoever reads of it finds it in the journal.
  if (files_ && event.kind == Event::Kind::Failed) files_->keep();
  trackers_.see(event, trial);
  display_.show(event, trial, experiment_);
}

void Witness::tick(Seconds now) {
  if (now - looked_at_ >= kBetweenLooks || now < looked_at_) look_at_files(now);
  const bool is_long = snapshot_after_ > 0 && files_ && files_->journal_bytes() >= snapshot_at_;
  if (is_long) take_snapshot(now);
  if (keeper_ && trouble_.empty()) tidying_.tick(*keeper_, experiment_, now);
  trackers_.tick([&](const std::string& notice) { note(notice, now); });
  if (report_every_ > Seconds(0) && now >= report_at_) show_under_way(now);
  display_.tick(experiment_, now);
}

void Witness::take_snapshot(Seconds now) {
  look_at_files(now);
  if (!files_ || !trouble_.empty() || experiment_.closed()) return;
  const auto text = to_text({.events = events_,
                             .now = now,
                             .files = files_->mark(),
                             .record = record_.save(),
                             .keeper = keeper_->save(),
                             .experiment = experiment_.save()});
  // As much again as it takes, so that all snapshots together cost as much as the journal.
  snapshot_at_ = std::max(snapshot_after_, 2 * text.size());
  try {
    replace_file(folder() / kSnapshotFile, text, Sync::Yes);
    files_->begin_journal(header_, events_);
  } catch (const std::runtime_error& failed) {
    snapshot_at_ += files_->journal_bytes();
    note(std::string(failed.what()) + ". The journal goes on without it", now);
  }
}

void Witness::note(const std::string& notice, Seconds now) {
  if (std::ranges::count(notices_, notice) > 0) return;
  notices_.push_back(notice);
  display_.note(notice, now);
}

/// The search waits meanwhile, so the longer a report takes, the rarer it is.
void Witness::show_under_way(Seconds now) {
  const auto between = std::max(report_every_, kReportShare * report_took_);
  report_at_ = now + between;
  if (events_ == reported_events_ && ++reports_left_out_ < kReportsUnchanged) return;
  reported_events_ = events_;
  reports_left_out_ = 0;
  const auto start = std::chrono::steady_clock::now();
  write_report(now, {.run = RunState::UnderWay,
                     .written = std::chrono::system_clock::now(),
                     .every = kReportsUnchanged * between});
  report_took_ = std::chrono::steady_clock::now() - start;
  report_at_ = now + std::max(report_every_, kReportShare * report_took_);
}

/// A page is no reason to end a search.
void Witness::write_report(Seconds now, const PageState& page) {
  if (!files_ || !trouble_.empty()) return;
  const auto title = folder().parent_path().filename() / folder().filename();
  const bool is_last = page.run != RunState::UnderWay;
  try {
    replace_file(folder() / "report.html",
                 html_report(experiment_, space_, record_, title.string(), now, page,
                             is_last ? curves_of_reports(folder(), experiment_) : MetricCurves{}));
  } catch (const std::exception& failed) {
    note(failed.what(), now);
  }
}

/// As Overview::how_to_go_on.
std::string Witness::how_to_go_on() const {
  if (!sweep_file_.empty() || !has_several_runs_in(folder().parent_path()))
    return resume_command(sweep_file_, storage_, folder());
  return fmt::format(
      "tune::resume on that folder; this program has several runs in {}, of which .resume = true "
      "takes the last, so give each search a .storage of its own",
      folder().parent_path().string());
}

Outcome Witness::conclude(Seconds now) {
  const auto begun = experiment_.trials().size();
  if (const auto size = experiment_.searcher().size();
      size && begun < *size && !experiment_.closed())
    note(fmt::format("the searcher had no more after {} of {}", begun, counted(*size, "trial")),
         now);
  write_summary(now);
  const auto tell = [&](const std::string& what) { say(what, now); };
  if (keeper_ && trouble_.empty()) tidying_.finish(*keeper_, experiment_, tell, {});
  write_report(now, {.written = std::chrono::system_clock::now()});
  trackers_.conclude(
      experiment_, now, [&](const std::string& notice) { note(notice, now); }, tell);
  auto overview = overview_of(experiment_, now, 0);
  if (elsewhere_.empty()) overview.folder = folder().string();
  overview.best_checkpoint = names_.path_of(overview.best_checkpoint);
  overview.how_to_go_on = how_to_go_on();
  overview.notices.insert(overview.notices.end(), notices_.begin(), notices_.end());
  display_.finish(experiment_, overview);
  auto outcome = outcome_of(experiment_, now, names_);
  outcome.summary = render_summary(overview, {});
  outcome.folder = overview.folder;
  outcome.earlier = earlier_configs_;
  return outcome;
}

void Witness::leave_nothing() {
  const bool has_started = std::ranges::any_of(experiment_.trials(), &Trial::has_started);
  if (before_ || has_started || !files_ || !folder_.is_there()) return;
  files_.reset();
  keeper_.reset();
  trackers_.leave_folder();
  std::error_code ignored;
  std::filesystem::remove_all(folder(), ignored);
}

/// Nothing more is written by name once the folder is gone: another run may have taken its name.
void Witness::look_at_folder(Seconds now) {
  if (!files_ || folder_.is_there()) return;
  files_.reset();
  keeper_.reset();
  trackers_.leave_folder();
  elsewhere_ = fmt::format("{}.lost-{:08x}", folder().string(), std::random_device()());
  note(
      fmt::format("{} was removed or renamed while the run went on: nothing more is written there, "
                  "and the run cannot be gone on with. This program still returns the results; "
                  "trials that begin now write to {}",
                  folder().string(), elsewhere_.string()),
      now);
}

std::filesystem::path Witness::folder_of_trials(Seconds now) {
  look_at_folder(now);
  return elsewhere_.empty() ? folder() : elsewhere_;
}

/// Says once that a disk is full, and once that it is no more.
void Witness::look_at_files(Seconds now) {
  looked_at_ = now;
  look_at_folder(now);
  if (!files_) return;
  const auto trouble = files_->flush();
  if (!trouble.empty() && trouble_.empty())
    note(trouble + ". The search goes on, and what is not written follows when there is room", now);
  if (trouble.empty() && !trouble_.empty())
    note("what the disk had no room for is written now", now);
  trouble_ = trouble;
}

void Witness::write_summary(Seconds now) {
  look_at_files(now);
  if (!files_) return;
  if (!trouble_.empty())
    note("the files are not whole; the results that this program has are", now);
  try {
    files_->write_summary(experiment_, now);
  } catch (const std::runtime_error& failed) {
    note(failed.what(), now);
  }
}

}  // namespace troupe::tune::detail
