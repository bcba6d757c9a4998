#include "output/folder/earlier_run.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <troupe/tune/detail/checks.hpp>

#include "output/folder/run_folder.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace fs = std::filesystem;
namespace {

constexpr auto* kSummaryFile = "summary.json";

std::string whole_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw std::runtime_error(
        fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Its journal has its first line.
bool has_begun(const fs::path& folder) {
  std::ifstream in(folder / kJournalFile, std::ios::binary);
  std::string line;
  return std::getline(in, line) && !in.eof();
}

/// What a run has left in its folder beside a journal; empty: nothing that it had not when it began.
std::vector<std::string> left_in(const fs::path& folder) {
  std::vector<std::string> left;
  std::error_code failed;
  for (const auto* name : {kSnapshotFile, "reports.jsonl", "pbt.jsonl", kSummaryFile, "trials"}) {
    const auto file = folder / name;
    if (!fs::exists(file, failed)) continue;
    const bool is_empty = !fs::is_directory(file, failed) && fs::file_size(file, failed) == 0;
    if (!is_empty) left.emplace_back(name);
  }
  return left;
}

/// The run-N, highest first.
std::vector<fs::path> runs_in(const fs::path& storage) {
  std::vector<std::pair<int, fs::path>> runs;
  std::error_code failed;
  for (fs::directory_iterator each(storage, failed), end; !failed && each != end;
       each.increment(failed)) {
    if (const int number = run_number(each->path()); number > 0)
      runs.emplace_back(-number, each->path());
  }
  std::ranges::sort(runs);
  std::vector<fs::path> paths;
  for (auto& [number, path] : runs) paths.push_back(std::move(path));
  return paths;
}

/// The name of the sweep file that the run belongs to; empty: it does not say so, as one of a
/// program's own search or of an earlier version.
std::string sweep_file_of(const fs::path& run) {
  std::error_code failed;
  if (!fs::is_regular_file(run / detail::kProgramFile, failed)) return {};
  const auto program = json_in(run / detail::kProgramFile);
  const auto file = program.is_object() ? program.value("file", Json()) : Json();
  return file.is_string() ? file.get<std::string>() : std::string();
}

/// A file's name as program.json has it, which is UTF-8 also where the name is not.
std::string as_recorded(const fs::path& file) {
  const auto name = Json(file.filename().string());
  return Json::parse(name.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

/// The runs of a storage that belong to other sweep files than the one that is looked for.
class RunsOfOthers {
 public:
  /// Highest N first.
  void add(const fs::path& run, const std::string& file) {
    const auto is_same = [&](const auto& other) { return other.first == file; };
    if (std::ranges::none_of(last_, is_same)) last_.emplace_back(file, run);
  }
  bool empty() const { return last_.empty(); }
  [[noreturn]] void refuse(const fs::path& storage, const std::string& name) const {
    std::string files;
    for (std::size_t i = 0; i < std::min(last_.size(), kMostNamed); ++i)
      files += fmt::format("{}'{}' (the last is {})", i == 0 ? "" : ", ", last_[i].first,
                           last_[i].second.filename().string());
    if (last_.size() > kMostNamed) files += fmt::format(" and {} more", last_.size() - kMostNamed);
    throw std::runtime_error(fmt::format(
        "tune: no run in '{}' belongs to '{}': those in it belong to {}. Name the run's folder, as "
        "`--run {}`, to take it all the same, or begin a run of this file",
        storage.string(), name, files, last_.front().second.string()));
  }

 private:
  static constexpr std::size_t kMostNamed = 5;
  std::vector<std::pair<std::string, fs::path>> last_;  // by file, its last run
};

/// The run-N with the highest N of those that have begun; empty: there is none. As last_run().
fs::path last_begun(const fs::path& storage, const std::string& sweep_file = {}) {
  const auto name = as_recorded(sweep_file);
  RunsOfOthers others;
  fs::path unnamed;
  for (auto& run : runs_in(storage)) {
    const auto file = name.empty() ? std::string() : sweep_file_of(run);
    const bool is_of_other = !file.empty() && file != name;
    if (is_of_other && has_begun(run)) others.add(run, file);
    if (is_of_other) continue;
    if (!has_begun(run)) {
      refuse_without_journal(run);
    } else if (file == name) {
      return run;
    } else if (unnamed.empty()) {
      unnamed = run;
    }
  }
  if (unnamed.empty() && !others.empty()) others.refuse(storage, name);
  return unnamed;
}

/// Of a run that is over, or was when it was written; or what is wrong with it.
std::variant<Json, std::string> summary_in(const fs::path& file) {
  const auto text = whole_text(file);
  std::string why = "it is no summary of a run";
  try {
    auto summary = Json::parse(text);
    if (summary.is_object() && summary.contains("ended_early") && summary.contains("trials"))
      return summary;
  } catch (const Json::parse_error& broken) {
    why = fmt::format("it is no JSON from byte {} of {} on", broken.byte, text.size());
  }
  return fmt::format("{} is damaged: {}", file.string(), why);
}

}  // namespace

EarlierRun read_earlier(const fs::path& folder) {
  EarlierRun earlier{.journal = whole_text(folder / kJournalFile)};
  if (const auto snapshot = folder / kSnapshotFile; fs::exists(snapshot))
    earlier.snapshot = whole_text(snapshot);
  return earlier;
}

void refuse_without_journal(const fs::path& folder) {
  if (has_begun(folder)) return;
  const auto left = left_in(folder);
  if (left.empty()) return;
  std::string names = left.front();
  for (std::size_t i = 1; i < left.size(); ++i)
    names += (i + 1 < left.size() ? ", " : " and ") + left[i];
  throw std::runtime_error(fmt::format(
      "tune: {0}: its {1} is {2}, though {3} of it {4} there, so that it is no "
      "new "
      "run. Nothing in it was changed; put the journal back from a copy, or move the folder away "
      "and "
      "begin a new run",
      folder.string(), kJournalFile, fs::exists(folder / kJournalFile) ? "empty" : "gone", names,
      left.size() == 1 ? "is" : "are"));
}

std::string damage_of_summary(const fs::path& folder) {
  const auto file = folder / kSummaryFile;
  if (!fs::exists(file)) return {};
  const auto found = summary_in(file);
  const auto* damage = std::get_if<std::string>(&found);
  return damage ? *damage : std::string();
}

void remove_summary(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / kSummaryFile, ignored);
}

LastRun last_run(const fs::path& storage, const std::string& sweep_file) {
  const auto last = last_begun(storage, sweep_file);
  if (last.empty()) return {};
  if (!fs::exists(last / kSummaryFile)) return {.folder = last};
  const auto found = summary_in(last / kSummaryFile);
  if (const auto* damage = std::get_if<std::string>(&found))
    return {.folder = last, .damaged_summary = *damage};
  const auto& summary = std::get<Json>(found);
  const auto ended_early = summary.value("ended_early", Json());
  const bool is_as_asked = summary.value("ended_as_asked", Json()) == true;
  return {.folder = last,
          .is_over = ended_early.is_null() || is_as_asked,
          .ended_as_asked = is_as_asked && ended_early.is_string() ? ended_early.get<std::string>()
                                                                   : std::string()};
}

fs::path run_in(const fs::path& folder) {
  if (fs::exists(folder / kJournalFile)) return folder;
  if (run_number(folder) > 0) refuse_without_journal(folder);
  if (const auto run = last_begun(folder); !run.empty()) return run;
  throw std::runtime_error(fmt::format(
      "{} has no run: there is neither a {} in it nor a folder run-N that has one; name a run's "
      "folder, such as results/run-1, or the one that its runs are in",
      folder.string(), kJournalFile));
}

std::string resume_command(const std::string& sweep_file, const fs::path& storage,
                           const fs::path& folder) {
  if (sweep_file.empty()) return {};
  auto command = "troupe tune resume " + sweep_file;
  try {
    std::error_code failed;  // one of them is gone: not the same
    const auto last = last_begun(spelled(storage), sweep_file);
    if (!last.empty() && fs::equivalent(last, folder, failed)) return command;
  } catch (const std::runtime_error&) {
    // It cannot be told which is the last one.
  }
  return fmt::format("{} --run {}", command, folder.string());
}

}  // namespace troupe::tune
