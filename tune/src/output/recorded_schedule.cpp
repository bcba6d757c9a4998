#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/tune/replay.hpp>

#include "text/json.hpp"

// The schedule of a trial, read back from what its run left (report_files.hpp).
namespace troupe::tune {
namespace fs = std::filesystem;
namespace {

/// Calls `take` with every whole line of the file that starts with `beginning`.
void for_lines(const fs::path& file, std::string_view beginning,
               const std::function<void(const Json&)>& take) {
  std::ifstream in(file);
  if (!in)
    throw std::runtime_error(
        fmt::format("cannot read {}: {}; name the folder of a run, as results/run-1", file.string(),
                    std::strerror(errno)));
  int number = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    ++number;
    if (!line.starts_with(beginning)) continue;
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

/// What the journal says of each trial: its first configuration, and how often it had taken over
/// when it reported its best.
class Reader {
 public:
  void header(const Json& header) {
    objective = {header.at("metric").get<std::string>(), header.at("mode") == "max" ? Max : Min};
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

  Objective objective = {};
  std::uint64_t seed = 0;
  std::vector<Trial> trials = {};

 private:
  std::vector<std::size_t> takeovers_;  // of each trial's last launch
};

}  // namespace

RecordedSchedule recorded_schedule(const fs::path& folder, TrialId trial) {
  Reader reader;
  for_lines(folder / "journal.jsonl", "{", [&](const Json& line) {
    const auto kind = line.value("event", "");
    if (line.contains("journal")) reader.header(line);
    if (kind == "launched") reader.launched(line);
    if (kind == "reported") reader.reported(line);
  });
  auto& trials = reader.trials;
  if (trial >= trials.size()) {
    throw std::invalid_argument(fmt::format("{} has {} trials, and none of number {}",
                                            folder.string(), trials.size(), trial));
  }
  if (fs::exists(folder / "pbt.jsonl"))
    for_lines(folder / "pbt.jsonl", "{", [&](const Json& line) { add_takeover(trials, line); });
  for (auto& each : trials) {
    if (!each.takeovers.empty()) each.config = each.takeovers.back().after;
  }
  return {reader.objective, reader.seed, schedule_to_best(trials, trial)};
}

}  // namespace troupe::tune
