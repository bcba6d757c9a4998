#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>
#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "small_disk.hpp"
#include "support/temporary_folder.hpp"

namespace full_disk_test {

using namespace troupe;

namespace {

struct Config {
  double x = 0;
  std::string disk;
  bool gets_room = true;
};

/// The disk is full from trial 1 on, and has room again after trial 2 where it gets that. The sweep
/// looks at its files every 10 ms, also meanwhile.
void reports(tune::Context& ctx, const Config& config) {
  const auto trial = ctx.storage().filename();
  if (trial == "1") test::fill(config.disk);
  for (int step = 0; step < 200; ++step) {
    if (trial == "1" && step == 100) ::usleep(20'000);
    ctx.report({{"score", config.x}});
  }
  if (trial == "2" && config.gets_room) test::make_room(config.disk);
}

auto sweep(const test::SmallDisk& disk, bool gets_room, bool resume = false) {
  return tune::run<reports>({.space = {{"x", tune::uniform(0, 1)}},
                             .trials = 4,
                             .metric = "score",
                             .storage = disk.path() / "results",
                             .resume = resume,
                             .config = {.disk = disk.path().string(), .gets_room = gets_room},
                             .show = tune::Show::None,
                             .in_process = true});
}

int whole_reports_in(const std::filesystem::path& run) {
  std::ifstream lines(run / "reports.jsonl");
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += line.ends_with('}') ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a sweep goes on while the disk is full, says so once, and loses nothing",
          "[tune][files]") {
  const tune::TemporaryFolder folder;
  const test::SmallDisk disk(folder.path(), 1024);
  if (!disk.is_there()) return;
  const auto results = sweep(disk, true);
  CHECK(results.ended_early() == "");
  for (const auto& trial : results.trials()) CHECK(trial.trial.t == 200);
  const auto& text = results.summary();
  const auto at = text.find("note: cannot write ");
  REQUIRE(at != std::string::npos);
  CHECK(text.find("No space left on device. The search goes on", at) != std::string::npos);
  CHECK(text.find("note: cannot write ", at + 1) == std::string::npos);
  CHECK(text.find("what the disk had no room for is written now") != std::string::npos);
  CHECK(whole_reports_in(results.folder()) == 800);
  CHECK(std::filesystem::exists(results.folder() / "summary.json"));
}

TEST_CASE("a sweep whose disk stays full returns its results, and says what is not written",
          "[tune][files]") {
  const tune::TemporaryFolder folder;
  const test::SmallDisk disk(folder.path(), 1024);
  if (!disk.is_there()) return;
  const auto results = sweep(disk, false);
  CHECK(results.trials().size() == 4);
  for (const auto& trial : results.trials()) CHECK(trial.trial.t == 200);
  CHECK(results.summary().find(
            "note: the files are not whole; the results that this program has are") !=
        std::string::npos);
}

TEST_CASE("a sweep whose disk stayed full is gone on with once there is room", "[tune][files]") {
  const tune::TemporaryFolder folder;
  const test::SmallDisk disk(folder.path(), 1024);
  if (!disk.is_there()) return;
  const auto before = sweep(disk, false);
  REQUIRE(whole_reports_in(before.folder()) < 800);
  test::make_room(disk.path());
  const auto results = sweep(disk, true, true);
  CHECK(results.folder() == before.folder());
  REQUIRE(results.trials().size() == 4);
  for (const auto& trial : results.trials()) CHECK(trial.trial.t == 200);
  CHECK(whole_reports_in(results.folder()) == 800);
  CHECK(results.best().config.x == before.best().config.x);
}

}  // namespace full_disk_test
