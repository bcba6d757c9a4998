#include "run/earlier/snapshot.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "output/folder/earlier_run.hpp"
#include "text/checksum.hpp"

namespace troupe::tune::detail {
namespace {

constexpr int kVersion = 4;

/// Throws std::invalid_argument where another version wrote the snapshot, or where it was altered.
void check_lines(std::string_view first, std::string_view state, std::string_view rest) {
  const auto json = Json::parse(first, nullptr, /*allow_exceptions=*/false);
  const auto version = json.is_object() ? json.value("snapshot", Json()) : Json();
  const bool is_altered = look_at_checksum(first) == Checksum::Wrong;
  if (!is_altered && version.is_number_integer() && version != kVersion) {
    throw std::invalid_argument(
        fmt::format("the snapshot was written by {} Troupe: its version is {}, this one reads {}",
                    version > kVersion ? "a newer" : "an older", dump(version), kVersion));
  }
  for (const auto line : {first, state}) {
    if (look_at_checksum(line) != Checksum::Right)
      throw std::invalid_argument("the snapshot is damaged: its checksum is not that of its text");
  }
  if (!rest.empty()) throw std::invalid_argument("the snapshot is damaged: it has a third line");
}

}  // namespace

std::string to_text(const Snapshot& snapshot) {
  const auto& [line_bytes, rows, lineage_bytes] = snapshot.files;
  const auto first = dump({{"snapshot", kVersion},
                           {"events", snapshot.events},
                           {"now", snapshot.now.count()},
                           {"files", {line_bytes, rows, lineage_bytes}},
                           {"record", snapshot.record},
                           {"keeper", snapshot.keeper}});
  return with_checksum(first) + "\n" + with_checksum(snapshot.experiment) + "\n";
}

Snapshot snapshot_from(std::string_view text) {
  const auto first = text.find('\n');
  const auto last = text.find('\n', first + 1);
  if (first == std::string_view::npos || last == std::string_view::npos)
    throw std::invalid_argument("the snapshot was cut short");
  const auto state = text.substr(first + 1, last - first - 1);
  check_lines(text.substr(0, first), state, text.substr(last + 1));
  const auto json = parse(text.substr(0, first), "the first line of a snapshot");
  try {
    const auto& files = json.at("files");
    return {.events = json.at("events").get<std::uint64_t>(),
            .now = Seconds(json.at("now").get<double>()),
            .files = {files.at(0).get<std::uintmax_t>(), files.at(1).get<std::uint64_t>(),
                      files.at(2).get<std::uintmax_t>()},
            .record = json.at("record"),
            .keeper = json.at("keeper"),
            .experiment = std::string(state)};
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
