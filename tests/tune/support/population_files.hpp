#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "run/checkpoints/checkpoint_names.hpp"
#include "text/json.hpp"

/// What a run of members (support/member.hpp) has left in its folder.
namespace troupe::tune {

/// Each line of a file of JSON lines, but for one that is being written.
inline std::vector<Json> lines_of(const std::filesystem::path& file) {
  std::vector<Json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line) && !in.eof();)
    lines.push_back(parse(line, "a line of JSON"));
  return lines;
}

inline Json summary_of(const std::filesystem::path& run) {
  std::ifstream in(run / "summary.json");
  return Json::parse(in);
}

/// The journal's events of a kind, in their order: "launched", "failed", ...
inline std::vector<Json> events_of(const std::filesystem::path& run, const std::string& kind) {
  std::vector<Json> found;
  for (const auto& line : lines_of(run / "journal.jsonl")) {
    if (line.value("event", "") == kind) found.push_back(line);
  }
  return found;
}

inline double metric_of(const Json& report, const char* name) {
  return number_from(report.at("metrics").at(name));
}

/// What attempts that went on from a checkpoint have found there.
struct Restored {
  std::size_t attempts = 0;   ///< that went on from a checkpoint, and reported
  std::size_t of_others = 0;  ///< of them, from another trial's
  /// Of them, from one that was written on a node where the attempt had no rank.
  std::size_t across_nodes = 0;
};

/// Checks that every rank of every attempt that went on from a checkpoint has read the very bytes
/// that its writer had reported, and trains on from that step.
inline Restored check_what_was_restored(const std::filesystem::path& run, int ranks) {
  using Attempt = std::pair<TrialId, int>;
  const auto attempt_of = [](const Json& line) {
    return Attempt(line.at("trial").get<TrialId>(), line.at("attempt").get<int>());
  };
  std::map<std::string, Json> writers;   // by checkpoint
  std::map<Attempt, Json> first_report;  // of each attempt
  std::set<std::pair<TrialId, std::int64_t>> reported;
  for (const auto& report : lines_of(run / "reports.jsonl")) {
    writers[report.value("checkpoint", "")] = report;
    first_report.try_emplace(attempt_of(report), report);
    reported.emplace(report.at("trial").get<TrialId>(), report.at("t").get<std::int64_t>());
  }
  Restored restored;
  for (const auto& launched : events_of(run, "launched")) {
    const auto checkpoint = launched.value("checkpoint", "");
    const auto first = first_report.find(attempt_of(launched));
    if (checkpoint.empty() || first == first_report.end()) continue;
    INFO("the attempt began with " << dump(launched) << "\nand reported " << dump(first->second));
    REQUIRE(writers.contains(checkpoint));
    const auto& writer = writers.at(checkpoint);
    const auto& reader = first->second;
    const double written = metric_of(writer, "written");
    CHECK(written != 0);
    CHECK(metric_of(reader, "read") == written);
    CHECK(metric_of(reader, "others_read") == written * (ranks - 1));
    // A trial that went back to a checkpoint before its last one repeats reports, which are not kept.
    const auto after_t = launched.at("after_t").get<std::int64_t>();
    auto t = after_t + 1;
    while (reported.contains({launched.at("trial").get<TrialId>(), t}) && t < reader.at("t")) ++t;
    CHECK(reader.at("t") == t);
    CHECK(metric_of(reader, "steps") ==
          metric_of(writer, "steps") + static_cast<double>(t - after_t));
    CHECK(reader.at("config") == launched.at("config"));
    const std::set<double> nodes{metric_of(reader, "node"), metric_of(reader, "last_node")};
    ++restored.attempts;
    restored.of_others += writer.at("trial") == reader.at("trial") ? 0 : 1;
    restored.across_nodes += nodes.contains(metric_of(writer, "node")) ? 0 : 1;
  }
  return restored;
}

/// Checks that pbt.jsonl and summary.json tell of the same takeovers and of the same schedule as
/// the results.
template <class Config>
void check_lineage(const Results<Config>& results) {
  const detail::CheckpointNames names(results.folder());
  std::map<std::pair<TrialId, std::size_t>, Json> told;
  const auto file = results.folder() / "pbt.jsonl";
  CHECK(std::filesystem::exists(file));
  for (const auto& line : lines_of(file)) {
    const std::pair key(line.at("to").template get<TrialId>(),
                        line.at("takeover").template get<std::size_t>());
    told.erase(key);
    if (!line.contains("undone")) told[key] = line;
  }
  for (const auto& result : results.trials()) {
    for (std::size_t number = 1; number <= result.trial.takeovers.size(); ++number) {
      const auto& takeover = result.trial.takeovers[number - 1];
      const auto line = told.extract({result.trial.id, number});
      REQUIRE_FALSE(line.empty());
      INFO(dump(line.mapped()));
      CHECK(line.mapped().at("from") == takeover.donor);
      CHECK(line.mapped().at("t") == takeover.t);
      CHECK(line.mapped().at("from_t") == takeover.checkpoint_t);
      CHECK(names.path_of(line.mapped().at("checkpoint")) == takeover.checkpoint);
      CHECK(line.mapped().at("old") == to_json(takeover.donor_config));
      CHECK(line.mapped().at("own") == to_json(takeover.before));
      CHECK(line.mapped().at("new") == to_json(takeover.after));
    }
  }
  CHECK(told.empty());
  auto schedule = Json::array();
  for (const auto& [after_t, trial, config] : results.schedule()) {
    schedule.push_back({{"after_t", after_t}, {"trial", trial}, {"config", to_json(config)}});
  }
  const auto summary = summary_of(results.folder());
  CHECK(summary.at("schedule") == schedule);
  CHECK(summary.at("best").at("trial") == results.best().trial.id);
}

}  // namespace troupe::tune
