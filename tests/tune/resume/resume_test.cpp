#include <algorithm>
#include <csignal>
#include <fstream>
#include <optional>
#include <set>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "output/run_folder.hpp"
#include "support/child.hpp"
#include "support/cluster.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr int kKilled = 128 + SIGKILL;

/// `snapshot_after`: bytes of the journal; 0: none is taken.
test::Finished drive_once(const TemporaryFolder& folder, const std::string& scheduler, int kill_at,
                          int snapshot_after = 0) {
  std::vector<std::string> environment{"TROUPE_ADDRESS="};
  if (snapshot_after > 0) environment.push_back("SNAPSHOT_AFTER=" + std::to_string(snapshot_after));
  return test::run({TROUPE_TEST_DRIVER, folder.path().string(), scheduler, std::to_string(kill_at)},
                   environment);
}

/// What a run decided, without times and without how often its parts were launched.
std::string decisions_of(const TemporaryFolder& folder) {
  const auto run = folder.path() / "run-1";
  std::string text;
  for (auto line : lines_of(run / "reports.jsonl")) {
    for (const auto* key : {"time_s", "attempt"}) line.erase(key);
    text += dump(line) + "\n";
  }
  const auto summary = summary_of(run);
  for (auto trial : summary.at("trials")) {
    for (const auto* key : {"started", "ended"}) trial.erase(key);
    text += dump(trial) + "\n";
  }
  const auto path = folder.path().string();
  for (auto at = text.find(path); at != std::string::npos; at = text.find(path))
    text.erase(at, path.size());
  return text;
}

auto lines_in(const std::filesystem::path& file) {
  const auto text = content_of(file);
  return std::ranges::count(text, '\n');
}

std::size_t reports_of(const TemporaryFolder& folder) {
  return lines_of(folder.path() / "run-1" / "reports.jsonl").size();
}

}  // namespace

TEST_CASE("a run whose driver is killed at any report decides as one that never was",
          "[tune][resume]") {
  const std::string scheduler =
      GENERATE("asha", "promotion", "pbt", "pb2", "tpe", "nsga2", "hyperband", "given");
  CAPTURE(scheduler);
  const TemporaryFolder undisturbed;
  REQUIRE(drive_once(undisturbed, scheduler, 0).exit_code == 0);
  const auto expected = decisions_of(undisturbed);
  const auto reports = static_cast<int>(reports_of(undisturbed));
  REQUIRE(reports > 25);
#ifdef TROUPE_CHECKS  // under sanitizers, whose processes take long to start
  constexpr int step = 4;
#else
  constexpr int step = 1;
#endif
  for (int kill_at = 1; kill_at <= reports; kill_at += step) {
    CAPTURE(kill_at);
    const TemporaryFolder folder;
    REQUIRE(drive_once(folder, scheduler, kill_at).exit_code == kKilled);
    const auto again = drive_once(folder, scheduler, 0);
    INFO(again.output);
    REQUIRE(again.exit_code == 0);
    CHECK_THAT(again.output, Catch::Contains("goes on with"));
    REQUIRE(decisions_of(folder) == expected);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "run-2"));
  }
}

TEST_CASE("a run whose driver is killed time and again comes to its end", "[tune][resume]") {
  const std::string scheduler =
      GENERATE("asha", "promotion", "pbt", "pb2", "tpe", "nsga2", "hyperband", "given");
  CAPTURE(scheduler);
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, scheduler, 0).exit_code == 0);
  int killed = 0;
  while (drive_once(folder, scheduler, 3).exit_code == kKilled) REQUIRE(++killed < 100);
  CHECK(killed > 8);
  CHECK(decisions_of(folder) == decisions_of(undisturbed));
}

TEST_CASE("a run that goes on from a snapshot decides as one that never was interrupted",
          "[tune][resume]") {
  const std::string scheduler =
      GENERATE("asha", "promotion", "pbt", "tpe", "hyperband", "given", "nsga2", "pb2");
  const int snapshot_after = GENERATE(1, 2000, 4000);
  CAPTURE(scheduler, snapshot_after);
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, scheduler, 0).exit_code == 0);
  int killed = 0, from_snapshot = 0;
  const auto run = folder.path() / "run-1";
  while (drive_once(folder, scheduler, 5, snapshot_after).exit_code == kKilled) {
    REQUIRE(++killed < 100);
    const auto header = lines_of(run / "journal.jsonl").front();
    if (header.contains("after_events")) ++from_snapshot;
  }
  CHECK(killed > 5);
  CHECK(from_snapshot >= (snapshot_after == 1 ? killed : 1));
  CHECK(decisions_of(folder) == decisions_of(undisturbed));
  CHECK(lines_in(run / "reports.csv") == lines_in(undisturbed.path() / "run-1" / "reports.csv"));
  // What a search of its own reads: the schedule of each trial, from the snapshot too.
  for (TrialId trial = 0; trial < 4; ++trial) {
    CHECK(recorded_schedule(run, trial).segments ==
          recorded_schedule(undisturbed.path() / "run-1", trial).segments);
  }
}

TEST_CASE("a journal that begins before its snapshot's end is passed over up to there",
          "[tune][resume]") {
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, "promotion", 0).exit_code == 0);
  REQUIRE(drive_once(folder, "promotion", 12).exit_code == kKilled);
  const auto journal = folder.path() / "run-1" / "journal.jsonl";
  const auto whole = content_of(journal);
  // Killed two reports later, with a snapshot of what came before; then, as if it had been killed
  // before the journal began anew, the old journal.
  REQUIRE(drive_once(folder, "promotion", 2, 1).exit_code == kKilled);
  REQUIRE(std::filesystem::exists(folder.path() / "run-1" / "snapshot.jsonl"));
  std::ofstream(journal) << whole;
  const auto again = drive_once(folder, "promotion", 0);
  INFO(again.output);
  REQUIRE(again.exit_code == 0);
  CHECK(decisions_of(folder) == decisions_of(undisturbed));
}

TEST_CASE("a snapshot that is gone, cut short or newer is refused, and nothing changes",
          "[tune][resume]") {
  const TemporaryFolder folder;
  REQUIRE(drive_once(folder, "asha", 12, 1).exit_code == kKilled);
  const auto run = folder.path() / "run-1";
  const auto snapshot = content_of(run / "snapshot.jsonl");
  const auto journal = content_of(run / "journal.jsonl");
  const auto [changed, why] = GENERATE_COPY(
      table<std::string, std::string>({{"", "the snapshot before it is gone"},
                                       {snapshot.substr(0, 100), "the snapshot was cut short"},
                                       {"{\"snapshot\":9" + snapshot.substr(13), "newer Troupe"}}));
  std::ofstream(run / "snapshot.jsonl") << changed;
  const auto refused = drive_once(folder, "asha", 0);
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, Catch::Contains(why));
  CHECK(content_of(run / "journal.jsonl") == journal);
}

TEST_CASE("a journal that lost what its snapshot has is begun anew, and is whole from there",
          "[tune][resume]") {
  const bool is_empty = GENERATE(true, false);
  CAPTURE(is_empty);
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, "promotion", 0).exit_code == 0);
  REQUIRE(drive_once(folder, "promotion", 12).exit_code == kKilled);
  const auto journal = folder.path() / "run-1" / "journal.jsonl";
  const auto old = content_of(journal);
  REQUIRE(drive_once(folder, "promotion", 4, 1).exit_code == kKilled);
  std::ofstream(journal) << (is_empty ? std::string() : old);
  REQUIRE(drive_once(folder, "promotion", 4).exit_code == kKilled);
  REQUIRE(drive_once(folder, "promotion", 4).exit_code == kKilled);
  REQUIRE(drive_once(folder, "promotion", 0).exit_code == 0);
  CHECK(decisions_of(folder) == decisions_of(undisturbed));
}

TEST_CASE("a journal whose last line was cut short is gone on with", "[tune][resume]") {
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, "promotion", 0).exit_code == 0);
  REQUIRE(drive_once(folder, "promotion", 12).exit_code == kKilled);
  std::ofstream(folder.path() / "run-1" / "journal.jsonl", std::ios::app) << R"({"event":"repor)";
  REQUIRE(drive_once(folder, "promotion", 0).exit_code == 0);
  CHECK(decisions_of(folder) == decisions_of(undisturbed));
}

TEST_CASE("a run that is over is not gone on with: the next one is new", "[tune][resume]") {
  const TemporaryFolder folder;
  REQUIRE(drive_once(folder, "asha", 0).exit_code == 0);
  REQUIRE(drive_once(folder, "asha", 0).exit_code == 0);
  CHECK(std::filesystem::exists(folder.path() / "run-2" / "summary.json"));
}

TEST_CASE("what cannot be gone on with is refused, and nothing in its folder changes",
          "[tune][resume]") {
  const TemporaryFolder folder;
  REQUIRE(drive_once(folder, "asha", 12).exit_code == kKilled);
  const auto journal = folder.path() / "run-1" / "journal.jsonl";
  const auto whole = content_of(journal);
  SECTION("another scheduler") {
    const auto other = drive_once(folder, "pbt", 0);
    CHECK(other.exit_code == 1);
    CHECK_THAT(other.output, Catch::Contains("the journal is of another search: searcher.trials is "
                                             "14 there, 4 here"));
  }
  SECTION("a newer version") {
    auto newer = whole;
    newer.replace(newer.find("\"journal\":") + 10, 1, "9");
    std::ofstream(journal) << newer;
    const auto other = drive_once(folder, "asha", 0);
    CHECK(other.exit_code == 1);
    CHECK_THAT(other.output, Catch::Contains("written by a newer Troupe: its version is 9"));
    CHECK(content_of(journal) == newer);
    return;
  }
  SECTION("another program runs it") {
    const int held = ::open((folder.path() / "run-1" / ".lock").c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
    const auto other = drive_once(folder, "asha", 0);
    ::close(held);
    CHECK(other.exit_code == 1);
    CHECK_THAT(other.output, Catch::Contains("run-1 is being run by process"));
  }
  SECTION("no run at all") {
    CHECK_THROWS_WITH(RunFolder::hold(folder.path()), Catch::Contains("is no run's folder"));
  }
  CHECK(content_of(journal) == whole);
}

TEST_CASE("a search on a cluster goes on after its driver or all of the cluster was killed",
          "[tune][resume][cluster]") {
  const bool with_cluster = GENERATE(false, true);
  CAPTURE(with_cluster);
  const TemporaryFolder folder;
  const auto drive = [&](const test::TestCluster& cluster) {
    return test::Child({TROUPE_TEST_DRIVER, folder.path().string(), "promotion", "0", "--address",
                        cluster.address()},
                       cluster.environment());
  };
  const auto reported = [&](std::size_t count) {
    return test::eventually([&] {
      const auto file = folder.path() / "run-1" / "reports.jsonl";
      return std::filesystem::exists(file) && lines_of(file).size() >= count;
    });
  };
  std::optional<test::TestCluster> cluster(std::in_place, 2);
  {
    auto driver = drive(*cluster);
    REQUIRE(reported(8));
    driver.signal(SIGKILL);
    REQUIRE(driver.wait());
  }
  if (with_cluster) {
    cluster.reset();
    cluster.emplace(2);
  }
  auto driver = drive(*cluster);
  const auto status = driver.wait();
  INFO(driver.output());
  CHECK(status == 0);
  const auto summary = summary_of(folder.path() / "run-1");
  REQUIRE(summary.at("trials").size() == 14);
  int finished = 0;
  for (const auto& trial : summary.at("trials")) {
    const auto t = trial.at("t").get<std::int64_t>();
    // What it reports is the sum of so many steps: an attempt after the kill went on from the last
    // checkpoint, or from the start, but from nothing in between.
    const auto lr = trial.at("config").at("lr").get<double>();
    CHECK(trial.at("best").get<double>() == Approx(lr * static_cast<double>(t)));
    CHECK(trial.at("failures") == 0);
    finished += t == 9 ? 1 : 0;
  }
  CHECK(finished >= 1);
  std::set<std::pair<TrialId, std::int64_t>> seen;
  for (const auto& line : lines_of(folder.path() / "run-1" / "reports.jsonl")) {
    CHECK(seen.emplace(line.at("trial").get<TrialId>(), line.at("t").get<std::int64_t>()).second);
  }
}
