#include <cmath>
#include <fstream>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/tune/replay.hpp>

#include "experiment/journal_lines.hpp"
#include "experiment/trial_json.hpp"
#include "output/folder/earlier_run.hpp"
#include "run/earlier/snapshot.hpp"
#include "text/json.hpp"
#include "text/names.hpp"

// The schedule of a trial, read back from what its run left (report_files.hpp).
namespace troupe::tune {
namespace fs = std::filesystem;
namespace {

/// Calls `take` with every whole line of the file.
void for_lines_of(const fs::path& file, const std::function<void(const Json&)>& take) {
  std::ifstream in(file);
  int number = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    ++number;
    try {
      take(parse(line, "a line of JSON"));
    } catch (const std::exception& broken) {
      throw std::runtime_error(
          fmt::format("{}, line {}: {}", file.string(), number, broken.what()));
    }
  }
}

void add_takeover(std::vector<Trial>& trials, const Json& line) {
  auto& takeovers = trials.at(line.at("to").get<TrialId>()).takeovers;
  const auto number = line.at("takeover").get<std::size_t>();
  if (number < 1 || number > takeovers.size() + 1)
    throw std::runtime_error("a takeover before it is missing");
  takeovers.resize(number - 1);  // this one is instead of an earlier one of its number
  if (line.contains("undone")) return;
  takeovers.push_back({.t = line.at("t").get<std::int64_t>(),
                       .donor = line.at("from").get<TrialId>(),
                       .checkpoint_t = line.at("from_t").get<std::int64_t>(),
                       .donor_takeovers = line.at("from_takeovers").get<std::size_t>(),
                       .before = configuration_from(line.at("own")),
                       .after = configuration_from(line.at("new"))});
}

/// What the journal, and the snapshot that it may go on from, say of each trial: its first
/// configuration, and how often it had taken over when it reported its best.
class Reader {
 public:
  /// Before the journal.
  void snapshot(std::string_view text) {
    const auto snapshot = detail::snapshot_from(text);
    known_ = snapshot.events;
    const auto state = parse(snapshot.experiment, "the state of a search");
    for (const auto& each : state.at("trials")) {
      auto& trial = trials.emplace_back(trial_from(each));
      takeovers_.push_back(trial.takeovers.size());
      if (!trial.takeovers.empty()) trial.config = trial.takeovers.front().before;
      trial.takeovers.clear();
    }
  }
  void line(const Json& line) {
    if (line.contains("journal")) {
      header(line);
      next_ = line.at("number").get<std::uint64_t>();
      return;
    }
    if (next_++ < known_) return;
    const auto kind = line.at("event").get<std::string>();
    if (kind == "launched") launched(line);
    if (kind == "reported") reported(line);
  }

  Objective objective = {};
  std::uint64_t seed = 0;
  std::vector<Trial> trials = {};

 private:
  void header(const Json& header) {
    objective = {name_from_utf8(header.at("metric").get<std::string>()),
                 header.at("mode") == "max" ? Max : Min};
    seed = header.at("seed").get<std::uint64_t>();
  }
  void launched(const Json& event) {
    const auto id = event.at("trial").get<TrialId>();
    if (id == trials.size())
      trials.push_back({.id = id, .config = configuration_from(event.at("config"))});
    takeovers_.resize(trials.size());
    takeovers_.at(id) = event.value("takeovers", std::size_t{0});
  }
  void reported(const Json& event) {
    const auto id = event.at("trial").get<TrialId>();
    auto& trial = trials.at(id);
    const auto value = objective.value_in(metrics_from(event.at("metrics")));
    if (!value || !std::isfinite(*value) || (trial.best && !objective.better(*value, *trial.best)))
      return;
    trial.best = value;
    trial.best_takeovers = takeovers_.at(id);
  }

  std::vector<std::size_t> takeovers_;  // of each trial's last launch
  std::uint64_t known_ = 0;             // events that the snapshot holds
  std::uint64_t next_ = 0;              // event of the run
};

/// Throws std::runtime_error with the file and the line.
void read_journal(const fs::path& file, std::string_view journal, Reader& reader) {
  try {
    for_lines(journal, [&](std::string_view text, std::size_t number) {
      try {
        reader.line(parse(text, "a line of JSON"));
      } catch (const std::exception& broken) {
        throw std::runtime_error(
            fmt::format("{}, line {}: {}", file.string(), number, broken.what()));
      }
    });
  } catch (const DamagedLine& damaged) {
    throw std::runtime_error(
        fmt::format("{}, line {}: {}", file.string(), damaged.number(), damaged.text()));
  } catch (const OtherVersion& other) {
    throw std::runtime_error(fmt::format("cannot read {}: {}", file.string(), other.what()));
  }
}

}  // namespace

RecordedSchedule recorded_schedule(const fs::path& folder, TrialId trial) {
  const auto journal = folder / "journal.jsonl";
  if (!fs::exists(journal)) {
    throw std::runtime_error(
        fmt::format("cannot read {}: it is not there; name the folder of a run, as results/run-1",
                    journal.string()));
  }
  Reader reader;
  const auto earlier = read_earlier(folder);
  if (!earlier.snapshot.empty()) reader.snapshot(earlier.snapshot);
  read_journal(journal, earlier.journal, reader);
  auto& trials = reader.trials;
  if (trial >= trials.size()) {
    throw std::invalid_argument(fmt::format("{} has {} trials, and none of number {}",
                                            folder.string(), trials.size(), trial));
  }
  const auto lineage = folder / "pbt.jsonl";
  for_lines_of(lineage, [&](const Json& line) { add_takeover(trials, line); });
  for (auto& each : trials) {
    if (!each.takeovers.empty()) each.config = each.takeovers.back().after;
  }
  return {reader.objective, reader.seed, schedule_to_best(trials, trial)};
}

}  // namespace troupe::tune
