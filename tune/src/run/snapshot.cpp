#include "run/snapshot.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "output/run_folder.hpp"

namespace troupe::tune::detail {
namespace {

constexpr int kVersion = 2;

}  // namespace

std::string to_text(const Snapshot& snapshot) {
  const auto& [line_bytes, rows, lineage_bytes] = snapshot.files;
  return dump({{"snapshot", kVersion},
               {"events", snapshot.events},
               {"now", snapshot.now.count()},
               {"files", {line_bytes, rows, lineage_bytes}},
               {"record", snapshot.record},
               {"keeper", snapshot.keeper}}) +
         "\n" + snapshot.experiment + "\n";
}

Snapshot snapshot_from(std::string_view text) {
  const auto first = text.find('\n');
  const auto last = text.find('\n', first + 1);
  if (first == std::string_view::npos || last == std::string_view::npos)
    throw std::invalid_argument("the snapshot was cut short");
  const auto json = parse(text.substr(0, first), "the first line of a snapshot");
  try {
    if (const auto version = json.at("snapshot").get<int>(); version > kVersion) {
      throw std::invalid_argument(
          fmt::format("the snapshot was written by a newer Troupe: its version is {}, this one "
                      "reads {}",
                      version, kVersion));
    }
    const auto& files = json.at("files");
    return {.events = json.at("events").get<std::uint64_t>(),
            .now = Seconds(json.at("now").get<double>()),
            .files = {files.at(0).get<std::uintmax_t>(), files.at(1).get<std::uint64_t>(),
                      files.at(2).get<std::uintmax_t>()},
            .record = json.at("record"),
            .keeper = json.at("keeper"),
            .experiment = std::string(text.substr(first + 1, last - first - 1))};
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a snapshot: {}", broken.what()));
  }
}

Snapshot snapshot_in(const std::filesystem::path& folder, std::string_view text) {
  try {
    return snapshot_from(text);
  } catch (const std::invalid_argument& refused) {
    throw std::runtime_error(fmt::format(
        "tune: {} cannot be used: {}. Nothing in {} was changed; put the file back from a copy, or "
        "begin a new run",
        (folder / kSnapshotFile).string(), refused.what(), folder.string()));
  }
}

}  // namespace troupe::tune::detail
