#include <cerrno>
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
void for_lines(const fs::path& file, std::string_view beginning, const std::function<void(const Json&)>& take) {
  std::ifstream in(file);
  if (!in)
    throw std::runtime_error(fmt::format("cannot read {}: {}; name the folder of a run, as results/run-1",
                                         file.string(), std::strerror(errno)));
  int number = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    ++number;
    if (!line.starts_with(beginning)) continue;
    try {
      take(parse(line, "a line of JSON"));
    } catch (const std::exception& broken) {
      throw std::runtime_error(fmt::format("{}, line {}: {}", file.string(), number, broken.what()));
    }
  }
}

void add_takeover(std::vector<Trial>& trials, const Json& line) {
  auto& takeovers = trials.at(line.at("to").get<TrialId>()).takeovers;
  const auto number = line.at("takeover").get<std::size_t>();
  if (number < 1 || number > takeovers.size() + 1) throw std::runtime_error("a takeover before it is missing");
  takeovers.resize(number - 1);  // this one is instead of an earlier one of its number
  if (line.contains("undone")) return;
  takeovers.push_back({.t = line.at("t").get<std::int64_t>(),
                       .donor = line.at("from").get<TrialId>(),
                       .checkpoint_t = line.at("from_t").get<std::int64_t>(),
                       .donor_takeovers = line.at("from_takeovers").get<std::size_t>(),
                       .before = configuration_from(line.at("own")),
                       .after = configuration_from(line.at("new"))});
}

}  // namespace

RecordedSchedule recorded_schedule(const fs::path& folder, TrialId trial) {
  RecordedSchedule recorded;
  const auto journal = folder / "journal.jsonl";
  for_lines(journal, R"({"journal")", [&](const Json& header) {
    recorded.objective = {header.at("metric").get<std::string>(), header.at("mode") == "max" ? Max : Min};
    recorded.seed = header.at("seed").get<std::uint64_t>();
  });
  std::vector<Trial> trials;
  for_lines(journal, R"({"event":"launched")", [&](const Json& event) {
    const auto id = event.at("trial").get<TrialId>();
    if (id == trials.size()) trials.push_back({.id = id, .config = configuration_from(event.at("config"))});
  });
  if (trial >= trials.size()) {
    throw std::invalid_argument(
        fmt::format("{} has {} trials, and none of number {}", folder.string(), trials.size(), trial));
  }
  if (fs::exists(folder / "pbt.jsonl"))
    for_lines(folder / "pbt.jsonl", "{", [&](const Json& line) { add_takeover(trials, line); });
  for (auto& each : trials) {
    if (!each.takeovers.empty()) each.config = each.takeovers.back().after;
  }
  recorded.segments = schedule_of(trials, trial);
  return recorded;
}

}  // namespace troupe::tune
