#include "output/tensorboard/event_files.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "output/tensorboard/event_records.hpp"

namespace troupe::tune {
namespace fs = std::filesystem;
namespace {

constexpr auto* kPrefix = "events.out.tfevents.";

void remove_event_files(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  std::vector<fs::path> old;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(kPrefix)) old.push_back(entry.path());
  }
  for (const auto& file : old) fs::remove(file);
}

std::string name_of(TrialId trial) { return fmt::format("trial-{}", trial); }

}  // namespace

bool EventFiles::File::flush() {
  try {
    if (!file) {
      if (waiting.empty()) return true;
      fs::create_directories(path.parent_path());
      file.emplace(path);
    }
    if (!waiting.empty()) file->append(std::exchange(waiting, {}));
    const bool is_whole = file->flush();
    trouble = file->trouble();
    return is_whole;
  } catch (const std::runtime_error& failed) {  // a filesystem_error is one
    trouble = failed.what();
    return false;
  }
}

EventFiles::EventFiles(Run run, SearchSpace space, Objective objective)
    : run_{std::move(run)}, space_{std::move(space)}, objective_{std::move(objective)} {
  remove_event_files(run_.folder);
}

void EventFiles::see(const Event& event, const Trial& trial, WallTime wall) {
  switch (event.kind) {
    case Event::Kind::Launched:
      begin(trial, wall);
      // A retry goes on after reports that a reader is to keep.
      if (std::exchange(takeovers_[trial.id], event.takeovers) != event.takeovers)
        append(name_of(trial.id), restart_record(wall, event.t + 1), wall);
      break;
    case Event::Kind::Reported:
      describe_experiment(event.metrics, wall);
      append(name_of(trial.id), scalars_record(wall, event.t, event.metrics), wall);
      break;
    default:
      break;
  }
  if (trial.over()) {
    end(trial, wall);
  } else if (!trial.in_flight) {
    close(name_of(trial.id));
  }
}

void EventFiles::begin(const Trial& trial, WallTime wall) {
  if (made_.contains(name_of(trial.id))) return;
  append(name_of(trial.id), session_start_record(wall, trial.config), wall);
}

void EventFiles::end(const Trial& trial, WallTime wall) {
  if (!ended_.insert(trial.id).second) return;
  const auto how = trial.status == Status::Errored ? SessionEnd::Failure : SessionEnd::Success;
  append(name_of(trial.id), session_end_record(wall, how), wall);
  close(name_of(trial.id));
}

void EventFiles::describe_experiment(const Metrics& metrics, WallTime wall) {
  if (std::exchange(is_described_, true)) return;
  std::vector<std::string> names{objective_.metric};
  for (const auto& metric : metrics) {
    if (std::ranges::find(names, metric.name) == names.end()) names.push_back(metric.name);
  }
  append("", experiment_record(wall, run_.title, space_, names), wall);
  close("");
}

bool EventFiles::has_room_for(std::string_view record) {
  if (behind_.empty()) return true;
  std::size_t kept = record.size();
  for (const auto& name : behind_) kept += files_.at(name).kept();
  is_overflown_ = is_overflown_ || kept > kMostKept;
  return !is_overflown_;
}

void EventFiles::append(const Name& name, std::string_view record, WallTime wall) {
  if (is_overflown_ || !has_room_for(record)) return;
  auto& file = files_[name];
  if (file.path.empty()) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(run_.began.time_since_epoch());
    file.path =
        run_.folder / name / fmt::format("{}{:010}.{}", kPrefix, seconds.count(), run_.driver);
  }
  if (made_.insert(name).second) {
    file.waiting = version_record(wall);
    if (run_.driver > 1) file.waiting += restart_record(wall, 0);
  }
  file.waiting += record;
  if (file.flush()) {
    behind_.erase(name);
  } else {
    behind_.insert(name);
  }
}

void EventFiles::close(const Name& name) {
  if (!behind_.contains(name)) files_.erase(name);
}

/// Says once that a disk is full, and once that it is no more.
Tracker::Notices EventFiles::tick() {
  std::erase_if(behind_, [&](const auto& name) { return files_.at(name).flush(); });
  const auto before = std::exchange(
      trouble_, behind_.empty() ? std::string() : files_.at(*behind_.begin()).trouble);
  if (!trouble_.empty() && before.empty())
    return {trouble_ + ". The search goes on, and what is not written follows when there is room"};
  if (trouble_.empty() && !before.empty())
    return {"the event files that the disk had no room for are written now"};
  return {};
}

Tracker::Notices EventFiles::conclude(const Experiment& experiment, WallTime wall, const Say&) {
  for (const auto& trial : experiment.trials()) end(trial, wall);
  auto notices = tick();
  if (is_overflown_) {
    notices.push_back(
        fmt::format("the event files in {} end early: {} MiB waited for room on the disk, and what "
                    "came after is lost",
                    run_.folder.string(), kMostKept >> 20));
  } else if (!behind_.empty()) {
    notices.push_back(fmt::format("the event files in {} are not whole", run_.folder.string()));
  }
  return notices;
}

}  // namespace troupe::tune
