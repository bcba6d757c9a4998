#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>

#include "hold.hpp"
#include "output/folder/earlier_run.hpp"
#include "output/folder/run_folder.hpp"
#include "support/child.hpp"
#include "support/cluster.hpp"
#include "support/population_files.hpp"
#include "support/temporary_folder.hpp"
#include "text/checksum.hpp"

using namespace troupe;
using namespace troupe::tune;

namespace {

constexpr int kKilled = 128 + SIGKILL;

/// Schedulers by the names that the driver has for them. With each a test is one of its own.
struct Asha {
  static constexpr auto* name = "asha";
};
struct Promotion {
  static constexpr auto* name = "promotion";
};
struct Pbt {
  static constexpr auto* name = "pbt";
};
struct Pb2 {
  static constexpr auto* name = "pb2";
};
struct Tpe {
  static constexpr auto* name = "tpe";
};
struct Nsga2 {
  static constexpr auto* name = "nsga2";
};
struct Hyperband {
  static constexpr auto* name = "hyperband";
};
struct Bohb {
  static constexpr auto* name = "bohb";
};
struct Given {
  static constexpr auto* name = "given";
};
struct Own {
  static constexpr auto* name = "own";
};
struct Growing {
  static constexpr auto* name = "growing";
};

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

/// By their names, with what they hold.
std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = content_of(entry.path());
  }
  return files;
}

std::size_t reports_of(const TemporaryFolder& folder) {
  return lines_of(folder.path() / "run-1" / "reports.jsonl").size();
}

}  // namespace

TEMPLATE_TEST_CASE("a run whose driver is killed at any report decides as one that never was",
                   "[tune][resume]", Asha, Promotion, Pbt, Pb2, Tpe, Nsga2, Hyperband, Bohb, Given,
                   Own, Growing) {
  const std::string scheduler = TestType::name;
  const TemporaryFolder undisturbed;
  REQUIRE(drive_once(undisturbed, scheduler, 0).exit_code == 0);
  const auto expected = decisions_of(undisturbed);
  const auto reports = static_cast<int>(reports_of(undisturbed));
  REQUIRE(reports > 25);
  for (int kill_at = 1; kill_at <= reports; ++kill_at) {
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

TEMPLATE_TEST_CASE("a run whose driver is killed time and again comes to its end", "[tune][resume]",
                   Asha, Promotion, Pbt, Pb2, Tpe, Nsga2, Hyperband, Bohb, Given, Own, Growing) {
  const std::string scheduler = TestType::name;
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, scheduler, 0).exit_code == 0);
  int killed = 0;
  while (drive_once(folder, scheduler, 3).exit_code == kKilled) REQUIRE(++killed < 100);
  CHECK(killed > 8);
  CHECK(decisions_of(folder) == decisions_of(undisturbed));
}

TEMPLATE_TEST_CASE("a run that goes on from a snapshot decides as one that never was interrupted",
                   "[tune][resume]", Asha, Promotion, Pbt, Pb2, Tpe, Nsga2, Hyperband, Bohb, Given,
                   Own, Growing) {
  const std::string scheduler = TestType::name;
  const int snapshot_after = GENERATE(1, 2000, 4000);
  CAPTURE(snapshot_after);
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, scheduler, 0).exit_code == 0);
  int killed = 0, from_snapshot = 0;
  const auto run = folder.path() / "run-1";
  while (drive_once(folder, scheduler, 5, snapshot_after).exit_code == kKilled) {
    REQUIRE(++killed < 100);
    const auto header = lines_of(run / "journal.jsonl").front();
    if (header.at("number") > 0) ++from_snapshot;
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
  auto altered = snapshot;
  altered[99] = altered[99] == '0' ? '1' : '0';
  const auto [changed, why] = GENERATE_COPY(table<std::string, std::string>(
      {{"", "the snapshot before it is gone"},
       {snapshot.substr(0, 100),
        "run-1/snapshot.jsonl cannot be "
        "used: the snapshot was cut short"},
       {with_checksum("{\"snapshot\":9}") + "\n{}\n",
        "written by a newer Troupe: its version is 9"},
       {"{\"snapshot\":2}\n{}\n", "written by an older Troupe: its version is 2"},
       {altered, "the snapshot is damaged"}}));
  std::ofstream(run / "snapshot.jsonl") << changed;
  const auto refused = drive_once(folder, "asha", 0);
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, Catch::Contains(why));
  CHECK(content_of(run / "journal.jsonl") == journal);
}

TEST_CASE("a journal that lost what its snapshot has is begun anew, and is whole from there",
          "[tune][resume]") {
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, "promotion", 0).exit_code == 0);
  REQUIRE(drive_once(folder, "promotion", 12).exit_code == kKilled);
  const auto journal = folder.path() / "run-1" / "journal.jsonl";
  const auto old = content_of(journal);
  REQUIRE(drive_once(folder, "promotion", 4, 1).exit_code == kKilled);
  std::ofstream(journal) << old;
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

TEST_CASE("a run that another version wrote is refused, and nothing in its folder changes",
          "[tune][resume]") {
  const TemporaryFolder folder;
  REQUIRE(drive_once(folder, "asha", 12).exit_code == kKilled);
  const auto journal = folder.path() / "run-1" / "journal.jsonl";
  const auto whole = content_of(journal);
  const auto [line, why] = GENERATE(table<std::string, std::string>(
      {{R"({"journal":9,"seed":1})", "a newer Troupe: its version is 9"},
       {R"({"journal":4,"seed":1})", "an older Troupe: its version is 4"}}));
  const auto others = line + whole.substr(whole.find('\n'));
  std::ofstream(journal) << others;
  const auto other = drive_once(folder, "asha", 0);
  CHECK(other.exit_code == 1);
  CHECK_THAT(other.output, Catch::Contains("written by " + why + ", this one reads 6") &&
                               Catch::Contains("with the Troupe that began it") &&
                               !Catch::Contains("give the options"));
  CHECK(content_of(journal) == others);
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
    CHECK_THAT(other.output,
               Catch::Contains("the journal is of another search: .trials is 14 there, "
                               "4 here"));
  }
  SECTION("a damaged line") {
    const bool is_json = GENERATE(false, true);
    CAPTURE(is_json);
    auto damaged = whole;
    const auto fourth = damaged.find('\n', damaged.find('\n', damaged.find('\n') + 1) + 1) + 1;
    damaged.replace(fourth, damaged.find('\n', fourth) - fourth, is_json ? R"({"a":1})" : "{nul");
    std::ofstream(journal) << damaged;
    const auto refused = drive_once(folder, "asha", 0);
    CHECK(refused.exit_code == 1);
    CHECK_THAT(refused.output, Catch::Contains("line 4 of its journal is damaged: ") &&
                                   Catch::Contains("`head -n 3 COPY > ") &&
                                   !Catch::Contains("give the options") &&
                                   !Catch::Contains("json.exception"));
    CHECK(content_of(journal) == damaged);
    std::ofstream(journal) << damaged.substr(0, fourth);
    CHECK(drive_once(folder, "asha", 0).exit_code == 0);
    return;
  }
  SECTION("an empty journal beside reports") {
    const bool is_cut = GENERATE(false, true);  // within its first line
    CAPTURE(is_cut);
    const auto reports = content_of(folder.path() / "run-1" / "reports.csv");
    std::ofstream(journal) << (is_cut ? whole.substr(0, 20) : std::string());
    const auto refused = drive_once(folder, "asha", 0);
    CHECK(refused.exit_code == 1);
    // Which other files the killed driver had written to by then hangs on the machine.
    CHECK_THAT(refused.output, Catch::Contains("its journal.jsonl is empty, though ") &&
                                   Catch::Contains("trials of it"));
    CHECK(content_of(journal) == (is_cut ? whole.substr(0, 20) : std::string()));
    CHECK(content_of(folder.path() / "run-1" / "reports.csv") == reports);
    return;
  }
  SECTION("no run at all") {
    CHECK_THROWS_WITH(RunFolder::hold(folder.path()), Catch::Contains("is no run's folder"));
  }
  CHECK(content_of(journal) == whole);
}

TEST_CASE("of two programs that run one folder the second is refused, and changes nothing",
          "[tune][resume]") {
  const bool is_resumed = GENERATE(false, true);  // what the first one runs
  const bool by_folder = GENERATE(false, true);   // how the second one asks for it
  CAPTURE(is_resumed, by_folder);
  const TemporaryFolder undisturbed, folder;
  REQUIRE(drive_once(undisturbed, "asha", 0).exit_code == 0);
  if (is_resumed) REQUIRE(drive_once(folder, "asha", 2).exit_code == kKilled);
  const Hold hold(folder.path());
  test::Child first({TROUPE_TEST_DRIVER, folder.path().string(), "asha", "0"}, {"TROUPE_ADDRESS="});
  const auto run = folder.path() / "run-1";
  const auto has_written_two_reports = [&] {
    return events_of(run, "reported").size() == 2 && reports_of(folder) == 2 &&
           lines_in(run / "reports.csv") == 3;
  };
  REQUIRE(test::eventually(has_written_two_reports));
  const auto before = files_in(folder.path());

  const auto second =
      test::run({TROUPE_TEST_DRIVER, folder.path().string(), "asha", "0"},
                {"TROUPE_ADDRESS=", "RESUME_FOLDER=" + (by_folder ? run.string() : "")});
  CHECK(second.exit_code == 1);
  CHECK_THAT(second.output, Catch::Contains(run.string() + " is being run by process " +
                                            std::to_string(first.pid())));
  CHECK(files_in(folder.path()) == before);

  hold.release();
  const auto status = first.wait();
  INFO(first.output());
  CHECK(status == 0);
  CHECK(decisions_of(folder) == decisions_of(undisturbed));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run-2"));
}

namespace {

test::Finished show(const std::filesystem::path& folder,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> command{TROUPE_PROGRAM, "tune", "show", folder.string()};
  command.insert(command.end(), more.begin(), more.end());
  return test::run(std::move(command));
}

}  // namespace

TEMPLATE_TEST_CASE("troupe tune shows the run of a program by its folder alone", "[tune][resume]",
                   Asha, Promotion, Pbt, Pb2, Tpe, Nsga2, Hyperband, Bohb, Given, Own, Growing) {
  const std::string scheduler = TestType::name;
  const int snapshot_after = GENERATE(0, 2000);
  CAPTURE(snapshot_after);
  const TemporaryFolder folder;
  REQUIRE(drive_once(folder, scheduler, 9, snapshot_after).exit_code == kKilled);
  const auto killed = show(folder.path() / "run-1");
  INFO(killed.output);
  CHECK(killed.exit_code == 0);
  CHECK_THAT(killed.output,
             Catch::Contains("it is not over: the same program with .resume = true") &&
                 Catch::Contains("(were under way: "));
  REQUIRE(drive_once(folder, scheduler, 0, snapshot_after).exit_code == 0);
  const auto shown = show(folder.path(), {"--json"});
  INFO(shown.output);
  REQUIRE(shown.exit_code == 0);
  auto there = parse(shown.output, "what was shown"), summary = summary_of(folder.path() / "run-1");
  for (auto* each : {&there, &summary}) each->erase("seconds");  // until the last event, or the end
  CHECK(dump(there) == dump(summary));
  const auto table = show(folder.path() / "run-1" / "").output;
  const auto* word = scheduler == "nsga2" ? "highest sum: trial " : "best: trial ";
  CHECK_THAT(table, Catch::Contains(word) && !Catch::Contains("it is not over"));
}

TEST_CASE("of a folder with several runs troupe tune shows the one with the highest number",
          "[tune][resume]") {
  const TemporaryFolder folder;
  CHECK(show(folder.path()).exit_code == 1);
  CHECK_THAT(show(folder.path()).output, Catch::Contains(folder.path().string() + " has no run") &&
                                             Catch::Contains("journal.jsonl"));
  REQUIRE(drive_once(folder, "asha", 0).exit_code == 0);
  for (const auto* name : {"run-9", "run-10", "run-11"})
    std::filesystem::copy(folder.path() / "run-1", folder.path() / name,
                          std::filesystem::copy_options::recursive);
  std::filesystem::remove(folder.path() / "run-11" / "journal.jsonl");
  CHECK_THAT(show(folder.path()).output,
             Catch::Contains("run-11: its journal.jsonl is gone, though reports.jsonl, "
                             "summary.json and trials of it are there"));
  std::filesystem::remove_all(folder.path() / "run-11");
  std::filesystem::create_directory(folder.path() / "run-11");  // it has not begun
  CHECK_THAT(show(folder.path()).output,
             Catch::Contains("results: " + (folder.path() / "run-10").string() + "\n"));
  const auto both = show(folder.path(), {"--run", (folder.path() / "run-1").string()});
  CHECK(both.exit_code == 1);
  CHECK_THAT(both.output, Catch::Contains("is a folder already"));
  const auto page = (folder.path() / "page.html").string();
  CHECK(
      test::run({TROUPE_PROGRAM, "tune", "report", folder.path().string(), "-o", page}).exit_code ==
      0);
  CHECK_THAT(content_of(page), Catch::Contains("\"name\":\"lr\"") && Catch::Contains("run-10"));
}
