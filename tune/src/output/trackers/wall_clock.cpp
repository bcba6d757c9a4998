#include "output/trackers/wall_clock.hpp"

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "output/append_file.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace {

constexpr auto* kClockFile = "clock.jsonl";

/// When the run in this folder began, if there is one.
WallTime begin_of(const std::filesystem::path& folder) {
  std::error_code failed;
  if (folder.empty()) return std::chrono::system_clock::now();
  const auto written = std::filesystem::last_write_time(folder / "params.json", failed);
  if (failed) return std::chrono::system_clock::now();
  return std::chrono::file_clock::to_sys(written);
}

}  // namespace

WallClock::WallClock(std::filesystem::path folder)
    : folder_{std::move(folder)}, begin_{begin_of(folder_)} {
  if (folder_.empty()) return;
  std::ifstream file(folder_ / kClockFile);
  for (std::string line; std::getline(file, line);) {
    try {
      const auto part = parse(line, "a line of the clock");
      parts_.push_back({Seconds(number_from(part.at("time_s"))),
                        WallTime(Seconds(number_from(part.at("unix_s"))))});
    } catch (const std::exception&) {
      // The line that was in flight when a driver died: the part before it counts on.
    }
  }
}

void WallClock::start(Seconds now, WallTime wall) {
  parts_.push_back({now, wall});
  if (folder_.empty()) return;
  try {
    const auto path = folder_ / kClockFile;
    if (std::filesystem::exists(path)) cut_file(path, std::filesystem::file_size(path));
    AppendFile(path).append(
        dump({{"time_s", now.count()}, {"unix_s", wall.time_since_epoch().count()}}) + "\n");
  } catch (const std::runtime_error&) {
    // The folder's other files say that it cannot be written.
  }
}

WallTime WallClock::at(Seconds now) const {
  Part part{Seconds(0), begin_};
  for (const auto& each : parts_) {
    if (each.from <= now) part = each;
  }
  return part.wall + (now - part.from);
}

}  // namespace troupe::tune
