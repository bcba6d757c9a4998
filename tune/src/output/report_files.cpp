#include "output/report_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "experiment/decision_json.hpp"
#include "experiment/journal.hpp"
#include "objectives/front.hpp"
#include "output/folder/params.hpp"
#include "output/folder/run_folder.hpp"
#include "output/overview.hpp"
#include "text/json_line.hpp"
#include "text/names.hpp"

namespace troupe::tune {
namespace {

constexpr std::array<std::string_view, 7> kOwnColumns{"trial",    "attempt", "t",     "time_s",
                                                      "decision", "rung",    "reason"};

constexpr auto* kReports = "reports.jsonl";
constexpr auto* kTable = "reports.csv";
constexpr auto* kLineage = "pbt.jsonl";

std::vector<std::string> columns(const SearchSpace& space) {
  std::vector<std::string> names(kOwnColumns.begin(), kOwnColumns.end());
  for (const auto& dimension : space) names.push_back("config/" + dimension.name);
  return names;
}

std::string metric_column(const std::string& name) {
  const bool taken = std::ranges::find(kOwnColumns, name) != kOwnColumns.end() ||
                     name.starts_with("config/") || name.starts_with("metric/") || name.empty();
  return taken ? "metric/" + name : name;
}

}  // namespace

ReportFiles::ReportFiles(std::filesystem::path folder, CsvFile table)
    : folder_{std::move(folder)},
      journal_{folder_ / kJournalFile},
      journal_bytes_{journal_.size()},
      lines_{folder_ / kReports},
      table_{std::move(table)} {}

ReportFiles ReportFiles::begin(std::filesystem::path folder, const SearchSpace& space,
                               const RunParams& params, const std::string& header) {
  CsvFile table(folder / kTable, columns(space));
  ReportFiles files(std::move(folder), std::move(table));
  params.write(files.folder_);
  files.begin_journal(header, 0);
  return files;
}

ReportFiles ReportFiles::go_on(std::filesystem::path folder, const SearchSpace& space,
                               const Journal& journal, const Mark& mark,
                               const std::vector<Trial>& trials) {
  const bool has_lines = cut_file(folder / kReports, mark.line_bytes);
  const bool has_lineage = cut_file(folder / kLineage, mark.lineage_bytes);
  std::error_code ignored;  // as if they had just been begun, also with another space's columns
  if (mark.rows == 0) std::filesystem::remove(folder / kTable, ignored);
  if (mark.lineage_bytes == 0) std::filesystem::remove(folder / kLineage, ignored);
  auto table = CsvFile::go_on(folder / kTable, columns(space), mark.rows);
  cut_file(folder / kJournalFile, journal.bytes);
  ReportFiles files(std::move(folder), std::move(table));
  files.events_ = journal.events;
  if (!has_lines) files.shortened_.emplace_back(kReports);
  if (files.table_.rows() < mark.rows) files.shortened_.emplace_back(kTable);
  if (!has_lineage) files.shortened_.emplace_back(kLineage);
  for (const auto& trial : trials) {
    if (const auto& all = trial.takeovers; !all.empty())
      files.written_[trial.id] = {all.size(), all.back()};
  }
  return files;
}

ReportFiles::Mark ReportFiles::mark() const {
  std::error_code none;
  const auto lineage = std::filesystem::file_size(folder_ / kLineage, none);
  return {lines_.size(), table_.rows(), none ? 0 : lineage};
}

void ReportFiles::begin_journal(const std::string& header, std::uint64_t events) {
  const auto beside = folder_ / (std::string(kJournalFile) + ".new");
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  AppendFile journal(beside);
  journal.append(numbered_line(header, events) + "\n");
  if (!journal.flush() || !journal.sync()) {
    const auto why = journal.trouble();
    std::filesystem::remove(beside, ignored);
    throw std::runtime_error(why);
  }
  journal.rename(folder_ / kJournalFile);
  sync_folder(folder_ / kJournalFile);
  journal_ = std::move(journal);
  journal_bytes_ = journal_.size();
  events_ = events;
}

void ReportFiles::write_again(const Event& event, const Trial* trial) {
  if (event.kind == Event::Kind::Reported) write_report(event);
  if (trial) write_lineage(event, *trial);
}

void ReportFiles::write(const Event& event, const Trial* trial) {
  write_again(event, trial);
  const auto line = numbered_line(to_line(event), ++events_) + "\n";
  journal_.append_later(line);
  journal_bytes_ += line.size();
}

std::string ReportFiles::flush() {
  if (!lines_.flush()) return lines_.trouble();
  if (!table_.flush()) return table_.trouble();
  append_lineage();
  if (!lineage_text_.empty()) return lineage_trouble_;
  if (lineage_ && !lineage_->flush()) return lineage_->trouble();
  return journal_.flush() ? "" : journal_.trouble();
}

void ReportFiles::write_lineage(const Event& event, const Trial& trial) {
  const auto& now = trial.takeovers;
  const auto at = written_.find(trial.id);
  const Written nothing;
  const auto& before = at == written_.end() ? nothing : at->second;
  if (now.size() == before.count && (now.empty() || now.back() == before.last)) return;
  const bool is_undone = now.size() < before.count;
  Json line{{"to", trial.id},
            {"takeover", now.size() + (is_undone ? 1 : 0)},
            {"time_s", event.now.count()}};
  if (is_undone) {
    line["undone"] = event.text.empty() ? trial.reason : event.text;
  } else {
    line.update(to_json(now.back()));
  }
  written_[trial.id] = {now.size(), now.empty() ? Takeover{} : now.back()};
  lineage_text_ += dump(line) + "\n";
  append_lineage();
}

/// The file is made with its first line, which a full disk may refuse.
void ReportFiles::append_lineage() {
  if (lineage_text_.empty()) return;
  try {
    if (!lineage_) lineage_.emplace(folder_ / kLineage);
    lineage_->append(std::exchange(lineage_text_, {}));
  } catch (const std::runtime_error& failed) {
    lineage_trouble_ = failed.what();
  }
}

void ReportFiles::write_report(const Event& event) {
  const auto action = name_of(event.decision);
  const auto why = name_in_utf8(why_of(event.decision));  // which may name metrics
  JsonLine line;
  line.add("trial", event.trial)
      .add("attempt", event.attempt)
      .add("t", event.t)
      .add("time_s", event.now.count())
      .add("config", event.config)
      .add("metrics", event.metrics)
      .add("decision", action);
  std::vector<CsvFile::Cell> cells{
      {"trial", std::to_string(event.trial)}, {"attempt", std::to_string(event.attempt)},
      {"t", std::to_string(event.t)},         {"time_s", to_string(event.now.count())},
      {"decision", std::string(action)},      {"reason", why}};
  if (const auto rung = rung_of(event.decision)) {
    line.add("rung", *rung);
    cells.emplace_back("rung", std::to_string(*rung));
  }
  if (!why.empty()) line.add("reason", why);
  if (!event.checkpoint.empty()) line.add("checkpoint", event.checkpoint);
  for (const auto& [name, value] : event.config)
    cells.emplace_back("config/" + name, name_in_utf8(to_string(value)));
  for (const auto& metric : event.metrics)
    cells.emplace_back(metric_column(name_in_utf8(metric.name)), to_string(metric.value));
  lines_.append_later(line.end() + "\n");
  table_.append(std::move(cells));
}

std::string summary_text(const Experiment& experiment, Seconds now, bool is_abandoned) {
  const auto trial_json = [is_abandoned](const Trial& trial) {
    auto json = to_json(trial);
    json["status"] = status_text(trial, is_abandoned);
    return json;
  };
  auto trials = Json::array();
  for (const auto& trial : experiment.trials()) trials.push_back(trial_json(trial));
  auto rungs = Json::array();
  for (const auto& rung : experiment.rungs()) {
    rungs.push_back({{"bracket", rung.bracket},
                     {"rung", rung.rung},
                     {"t", rung.t},
                     {"judged", rung.reached},
                     {"stopped", rung.stopped},
                     {"not_finite", rung.not_finite},
                     {"cutoff", rung.cutoff ? to_json(*rung.cutoff) : Json()}});
  }
  const auto& objective = experiment.options().objective;
  const auto* best = experiment.best();
  Json summary{
      {"metric", name_in_utf8(objective.metric)},
      {"mode", objective.mode == Mode::Max ? "max" : "min"},
      {"seconds", now.count()},
      {"goal_reached", experiment.reached_goal()},
      {"ended_as_asked", experiment.ended_as_asked()},
      {"ended_early", experiment.closed() ? Json(experiment.why_closed()) : Json()},
      {"not_begun", not_begun(experiment)},
      {"best", best ? trial_json(*best) : Json()},
      {"schedule", best ? to_json(schedule_to_best(experiment.trials(), best->id)) : Json()},
      {"rungs", rungs},
      {"trials", trials}};
  if (const auto& objectives = experiment.options().objectives; !objectives.empty()) {
    summary["objectives"] = tune::to_json(objectives);
    if (const auto& constraints = experiment.options().constraints; !constraints.empty())
      summary["constraints"] = tune::to_json(constraints);
    summary["pareto"] = pareto_front(experiment.trials(), objective, objectives);
  }
  return summary.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void ReportFiles::write_summary(const Experiment& experiment, Seconds now) {
  replace_file(folder_ / "summary.json", summary_text(experiment, now));
}

}  // namespace troupe::tune
