#include "run/witness.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <unistd.h>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "output/html/html_report.hpp"
#include "run/prepare.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

/// At the files, where event follows event: one write has the lines of many reports.
constexpr Seconds kBetweenLooks{0.01};

std::string header_of(const Experiment& experiment) {
  return journal_header(experiment.options(), experiment.searcher(), experiment.scheduler());
}

Json params_of(const Plan& plan, const Experiment& experiment) {
  auto params = parse(header_of(experiment), "a header");
  params["space"] = to_json(plan.space);
  params["workers"] = plan.workers;
  params["max_concurrent"] = plan.max_concurrent;
  params["time_budget_ms"] = plan.time_budget.count();
  return params;
}

Display display_of(Show show) {
  if (show == Show::None) return {Display::Kind::None, STDERR_FILENO, false};
  if (show == Show::Lines) return {Display::Kind::Lines, STDERR_FILENO, false};
  return Display::for_descriptor(STDERR_FILENO);
}

/// Of the run to go on with; empty: a new one is to begin.
std::filesystem::path folder_to_take_up(const Plan& plan) {
  if (!plan.resume_folder.empty()) return std::filesystem::absolute(plan.resume_folder);
  if (plan.resume && plan.storage.empty())
    throw std::invalid_argument(
        "tune: .resume goes on with the last run in .storage, and there is none; name a folder");
  return plan.resume ? last_unfinished(std::filesystem::absolute(plan.storage))
                     : std::filesystem::path();
}

}  // namespace

Witness::Witness(const Plan& plan, Experiment& experiment)
    : experiment_{experiment},
      space_{plan.space},
      display_{display_of(plan.show)},
      header_{header_of(experiment)},
      snapshot_after_{plan.snapshot_after},
      snapshot_at_{snapshot_after_},
      trackers_{plan} {
  if (!plan.is_sized) display_.set_ranks(plan.workers);
  if (const auto earlier = folder_to_take_up(plan); !earlier.empty()) {
    folder_ = RunFolder::hold(earlier);
    keeper_.emplace(folder(), plan.objective, plan.keep_checkpoints);
    take_up(plan, experiment);
  } else if (!plan.storage.empty()) {
    folder_ = RunFolder::make(std::filesystem::absolute(plan.storage));
    keeper_.emplace(folder(), plan.objective, plan.keep_checkpoints);
    files_ = ReportFiles::begin(folder(), plan.space, params_of(plan, experiment), header_);
    trackers_.open(folder());
  } else {
    trackers_.open({});
    return;
  }
  marker_ = folder() / fmt::format(".seen-{:016x}", std::random_device()() * 0x9e3779b97f4a7c15u);
  AppendFile{marker_};
}

Witness::~Witness() {
  std::error_code ignored;
  if (!marker_.empty()) std::filesystem::remove(marker_, ignored);
}

/// What a snapshot holds beside the experiment.
void Witness::take_up_rest(const Snapshot& snapshot) {
  try {
    record_.load(snapshot.record);
    keeper_->load(snapshot.keeper);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a snapshot: {}", broken.what()));
  }
}

void Witness::take_up(const Plan& plan, Experiment& experiment) {
  const auto earlier = read_earlier(folder());
  const auto open = std::string_view(earlier.journal).substr(0, end_of_open(earlier.journal));
  Snapshot known;
  std::size_t bytes = 0;
  try {
    check_header(open, header_);
    if (!earlier.snapshot.empty()) known = snapshot_from(earlier.snapshot);
    if (!known.experiment.empty()) experiment.load(known.experiment);
    const auto prepared = prepare(plan, true);
    if (!known.experiment.empty()) prepared.experiment->load(known.experiment);
    bytes = apply_events(open, *prepared.experiment, {}, known.events);
    if (!known.experiment.empty()) take_up_rest(known);
  } catch (const std::invalid_argument& refused) {
    throw std::invalid_argument(
        fmt::format("tune: cannot go on with {}: {}. Nothing in it was changed; give the options "
                    "that it was begun with, or begin a new run without .resume",
                    folder().string(), refused.what()));
  }
  files_ = ReportFiles::go_on(folder(), plan.space, bytes, known.files, experiment.trials());
  // A machine that lost power may have lost the end of a journal that the snapshot knows.
  const auto lines = std::ranges::count(open.substr(0, bytes), '\n');
  const auto has = lines == 0 ? 0 : events_before(open) + static_cast<std::uint64_t>(lines) - 1;
  if (lines == 0 || has < known.events) begin_journal(known.events);
  trackers_.open(folder());
  trackers_.see_before_snapshot(folder(), known.files.line_bytes, experiment.trials());
  already_ = known.now;
  events_ = known.events;
  const auto see_again = [&](const Event& event, const Trial* trial) {
    files_->write_again(event, trial);
    keeper_->see(event);
    record_.see(event, trial);
    trackers_.see_again(event, trial);
    already_ = event.now;
    ++events_;
  };
  apply_events(open.substr(0, bytes), experiment, see_again, known.events);
  for (const auto& name : files_->shortened()) {
    note(fmt::format("{} lacks reports that it had: somebody shortened it. The search goes on with "
                     "all of them",
                     (folder() / name).string()),
         already_);
  }
  const auto running = experiment.in_flight();
  note(fmt::format("goes on with {}: {} begun, {} under way when it ended", folder().string(),
                   counted(experiment.trials().size(), "trial"), running),
       already_);
}

void Witness::see(const Event& event, const Trial* trial) {
  ++events_;
  if (files_) files_->write(event, trial);
  if (keeper_) keeper_->see(event);
  if (files_) record_.see(event, trial);
  trackers_.see(event, trial);
  display_.show(event, trial, experiment_);
}

void Witness::tick(Seconds now) {
  if (now - looked_at_ >= kBetweenLooks || now < looked_at_) look_at_files(now);
  const bool is_long = snapshot_after_ > 0 && files_ && files_->journal_bytes() >= snapshot_at_;
  if (is_long) take_snapshot(now);
  if (keeper_ && trouble_.empty()) keeper_->tidy(experiment_);
  trackers_.tick([&](const std::string& notice) { note(notice, now); });
  display_.tick(experiment_, now);
}

void Witness::begin_journal(std::uint64_t events) {
  files_->begin_journal(events == 0 ? header_ : header_after(header_, events));
}

void Witness::take_snapshot(Seconds now) {
  look_at_files(now);
  if (!trouble_.empty() || experiment_.closed()) return;
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
    begin_journal(events_);
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

void Witness::write_report(Seconds now) {
  if (!files_ || !trouble_.empty()) return;
  const auto title = folder().parent_path().filename() / folder().filename();
  try {
    replace_file(folder() / "report.html",
                 html_report(experiment_, space_, record_, title.string(), now));
  } catch (const std::runtime_error& failed) {
    note(failed.what(), now);
  }
}

Outcome Witness::conclude(Seconds now) {
  write_summary(now);
  if (keeper_ && trouble_.empty()) keeper_->tidy(experiment_);
  write_report(now);
  trackers_.conclude(experiment_, now, [&](const std::string& notice) { note(notice, now); });
  auto overview = overview_of(experiment_, now, 0);
  overview.folder = folder().string();
  overview.notices.insert(overview.notices.end(), notices_.begin(), notices_.end());
  display_.finish(experiment_, overview);
  auto outcome = outcome_of(experiment_, now);
  outcome.summary = render_summary(overview, {});
  outcome.folder = folder();
  return outcome;
}

/// Says once that a disk is full, and once that it is no more.
void Witness::look_at_files(Seconds now) {
  looked_at_ = now;
  if (!files_) return;
  const auto trouble = files_->flush();
  if (!trouble.empty() && trouble_.empty())
    note(trouble + ". The search goes on, and what is not written follows when there is room", now);
  if (trouble.empty() && !trouble_.empty())
    note("what the disk had no room for is written now", now);
  trouble_ = trouble;
}

void Witness::write_summary(Seconds now) {
  if (!files_) return;
  look_at_files(now);
  if (!trouble_.empty())
    note("the files are not whole; the results that this program has are", now);
  try {
    files_->write_summary(experiment_, now);
  } catch (const std::runtime_error& failed) {
    note(failed.what(), now);
  }
}

}  // namespace troupe::tune::detail
