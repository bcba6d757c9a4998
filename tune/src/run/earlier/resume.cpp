#include "run/earlier/resume.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>

#include <fmt/format.h>

#include "experiment/journal.hpp"
#include "output/folder/earlier_run.hpp"
#include "output/folder/run_folder.hpp"
#include "output/mlflow/delivered_file.hpp"
#include "output/overview.hpp"
#include "run/earlier/resume_words.hpp"
#include "run/prepare.hpp"
#include "text/format.hpp"

namespace troupe::tune::detail {
namespace {

/// Of a sweep, whose command names what it does.
[[noreturn]] void refuse_over(const Plan& plan, const std::filesystem::path& folder, bool may_grow,
                              const std::string& notice) {
  throw std::invalid_argument(fmt::format(
      "tune: {0} has come to its end{1}; `troupe tune show {2}` shows it, `troupe tune run {2}` "
      "begins another{3}{4}",
      folder.string(), may_grow ? ", and the file asks for no more trials" : "", plan.sweep_file,
      notice.empty() ? "" : ". ", notice));
}

/// Of the snapshot: what it holds beside the experiment.
void load_rest(const Snapshot& known, RunRecord& record, CheckpointKeeper& keeper) {
  try {
    record.load(known.record);
    keeper.load(known.keeper);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a snapshot: {}", broken.what()));
  }
}

/// Whether the run in `folder` has nothing left, by its journal. One that cannot be resumed has: who
/// resumes it is told why not. Never throws.
bool is_over_by_journal(const Plan& plan, const std::filesystem::path& folder) {
  try {
    const auto prepared = prepare(plan, true);
    auto& experiment = *prepared.experiment;
    const auto earlier = read_earlier(folder);
    check_header(earlier.journal, journal_header(experiment));
    Snapshot known;
    if (!earlier.snapshot.empty()) known = snapshot_in(folder, earlier.snapshot);
    if (!known.experiment.empty()) experiment.load(known.experiment);
    apply_events(earlier.journal, experiment, {}, known.events);
    return experiment.closed() ? experiment.ended_as_asked()
                               : is_over(experiment, overview_of(experiment, Seconds(0), 0));
  } catch (const std::exception&) {
    return false;
  }
}

/// Whether the search of this header can learn what the run found that `journal` is of.
bool has_same_objectives(std::string_view journal, const std::string& header) {
  if (journal.find('\n') == std::string_view::npos) return true;
  const auto there = first_line_of(journal), here = parse(header, "a header");
  return std::ranges::all_of(std::array{"metric", "mode", "objectives"}, [&](const char* of) {
    return there.value(of, Json()) == here.value(of, Json());
  });
}

}  // namespace

RunToResume run_to_resume(const Plan& plan, const Experiment& experiment,
                          const std::string& header) {
  if (!plan.resume_folder.empty()) return {.folder = spelled(plan.resume_folder)};
  if (!plan.resume) return {};
  if (plan.storage.empty())
    throw std::invalid_argument(
        "tune: .resume goes on with the last run in .storage, and there is none; name a folder");
  auto last = last_run(spelled(plan.storage), plan.sweep_file);
  RunToResume found;
  if (!last.damaged_summary.empty()) {
    last.is_over = is_over_by_journal(plan, last.folder);
    if (last.is_over) found.notice = last.damaged_summary;
  }
  if (last.folder.empty() && !plan.sweep_file.empty()) {
    throw std::invalid_argument(
        fmt::format("tune: there is no run in {} to go on with; `troupe tune run {}` begins one",
                    plan.storage.native(), plan.sweep_file));
  }
  const bool may_grow =
      last.ended_as_asked.empty() && !experiment.scheduler().needs().counts_trials;
  const auto is_to_grow = [&] {
    return may_grow && has_more_trials(read_earlier(last.folder).journal, header);
  };
  const auto is_to_be_delivered = [&] {
    return !plan.sweep_file.empty() && !plan.mlflow.url.empty() &&
           DeliveredFile::is_behind(last.folder);
  };
  if (!last.is_over || is_to_grow() || is_to_be_delivered()) {
    found.folder = last.folder;
  } else {
    if (!plan.sweep_file.empty()) refuse_over(plan, last.folder, may_grow, found.notice);
    found.over = last.folder;
  }
  return found;
}

std::uint64_t ResumedRun::events() const {
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(journal, '\n'));
  return lines == 0 ? 0 : events_before(journal) + lines - 1;
}

ResumedRun resume_run(const Plan& plan, const std::filesystem::path& folder,
                      const std::string& header, Experiment& experiment, RunRecord& record,
                      CheckpointKeeper& keeper) {
  auto earlier = read_earlier(folder);
  refuse_without_journal(folder);
  ResumedRun run{.journal = std::move(earlier.journal)};
  auto& [journal, known, has_more] = run;
  has_more = has_more_trials(journal, header);
  try {
    for_lines(journal, {});  // also those behind the end of what is resumed
    journal.resize(end_of_open(journal));
    if (has_more)
      refuse_more_trials(experiment, journal, header);
    else
      check_header(journal, header);
    if (!earlier.snapshot.empty()) known = snapshot_in(folder, earlier.snapshot);
    if (!known.experiment.empty()) experiment.load(known.experiment);
    const auto prepared = prepare(plan, true);
    if (!known.experiment.empty()) prepared.experiment->load(known.experiment);
    journal.resize(apply_events(journal, *prepared.experiment, {}, known.events));
    if (!known.experiment.empty()) load_rest(known, record, keeper);
  } catch (const DamagedLine& damaged) {
    refuse_damaged(folder, damaged);
  } catch (const OtherVersion& other) {
    refuse_other_version(folder, other, plan);
  } catch (const std::invalid_argument& refused) {
    throw std::invalid_argument(fmt::format(
        "tune: cannot go on with {}: {}. Nothing in it was changed; {}", folder.string(),
        refused.what(), instead_of_going_on(plan, has_same_objectives(journal, header))));
  }
  return run;
}

std::string give_more_trials(ResumedRun& run, const std::filesystem::path& folder,
                             const std::string& header) {
  if (!run.has_more) return {};
  auto& journal = run.journal;
  const auto had = trials_of(journal);
  journal = numbered_line(header, events_before(journal)) + journal.substr(journal.find('\n'));
  remove_summary(folder);  // which says that the run is over
  replace_file(folder / kJournalFile, journal, Sync::Yes);
  return fmt::format("the run was to have {}, and may have {} now", counted(had, "trial"),
                     trials_of(header));
}

}  // namespace troupe::tune::detail
