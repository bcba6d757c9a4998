// Runs whose files were damaged: each damage is said, or makes no difference.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune.hpp>
#include <troupe/tune/detail/look.hpp>

#include "output/folder/earlier_run.hpp"
#include "support/temporary_folder.hpp"

namespace damaged_run_test {

namespace tune = troupe::tune;
using namespace troupe::tune;
using Catch::Contains;
using troupe::Verdict;
using Strings = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

int interrupt_at = 0;  // before this report of all trials together; 0: never
int reports = 0;

struct Config {
  double lr = 0.5;
};

void trains(Context& ctx, const Config& config) {
  for (int step = 1; step <= 4; ++step) {
    if (++reports == interrupt_at) std::raise(SIGINT);
    if (ctx.report({{"loss", config.lr + 1.0 / step}}) == Verdict::Stop) return;
  }
}

Options<Config> options(const TemporaryFolder& folder) {
  return {.space = {{"lr", uniform(0, 1)}},
          .trials = 6,
          .metric = "loss",
          .scheduler = asha({.max_t = 4, .eta = 2}),
          .storage = folder.path().string(),
          .seed = 5,
          .show = Show::None,
          .in_process = true};
}

Results<Config> run(Options<Config> options, int stop_at = 0) {
  reports = 0;
  interrupt_at = stop_at;
  return tune::run<trains>(options);
}

Results<Config> go_on(Options<Config> options) {
  options.resume = true;
  return run(options);
}

Strings decisions_of(const Results<Config>& results) {
  Strings decisions;
  for (const auto& [config, trial, text] : results.trials())
    decisions.push_back(text + ", " + trial.reason);
  return decisions;
}

Strings lines_of(const fs::path& file) {
  Strings lines;
  std::istringstream in(content_of(file));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void write(const fs::path& file, const Strings& lines) {
  std::ofstream out(file, std::ios::binary);
  for (const auto& line : lines) out << line << '\n';
}

/// By their names, but for the file that says who holds the folder.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != ".lock")
      files[entry.path().string()] = content_of(entry.path());
  }
  return files;
}

/// A digit of the line that is no part of its number or checksum: its value then is another one.
void alter_value(std::string& line) {
  const auto end = line.rfind(",\"number\":");
  const auto digit = line.find_last_of("0123456789", end);
  REQUIRE(digit != std::string::npos);
  line[digit] = line[digit] == '1' ? '2' : '1';
}

/// What is refused, by name, of a journal's lines with something done to line `at`.
std::map<std::string, Strings> damages(const Strings& lines, std::size_t at) {
  const auto place = static_cast<std::ptrdiff_t>(at);
  std::map<std::string, Strings> all;
  auto& altered = all["altered"] = lines;
  alter_value(altered[at]);
  auto& cut = all["cut short"] = lines;
  cut[at].resize(cut[at].size() / 2);
  auto& other = all["overwritten"] = lines;
  std::ranges::fill(other[at], '\0');
  auto& doubled = all["doubled"] = lines;
  doubled.insert(doubled.begin() + place, lines[at]);
  if (at + 1 == lines.size()) return all;
  auto& missing = all["missing"] = lines;
  missing.erase(missing.begin() + place);
  auto& exchanged = all["exchanged"] = lines;
  std::swap(exchanged[at], exchanged[at + 1]);
  return all;
}

/// A run that Ctrl-C ended. -> its folder.
fs::path interrupted(const TemporaryFolder& folder, std::size_t snapshot_after = 0) {
  auto wanted = options(folder);
  wanted.snapshot_after = snapshot_after;
  const auto results = run(wanted, 9);
  REQUIRE(results.ended_early() == "ended by the user (SIGINT)");
  tune::clear_interrupt();
  return results.folder();
}

}  // namespace

TEST_CASE("each damage of each line of a journal is found, whoever reads it, and nothing changes",
          "[tune][resume]") {
  const std::size_t snapshot_after = GENERATE(0, 400);
  CAPTURE(snapshot_after);
  const TemporaryFolder folder;
  const auto run_1 = interrupted(folder, snapshot_after);
  const auto journal = run_1 / "journal.jsonl";
  const auto lines = lines_of(journal);
  REQUIRE(lines.size() > 4);
  CHECK(fs::exists(run_1 / "snapshot.jsonl") == (snapshot_after > 0));
  std::size_t found = 0;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    for (const auto& [name, damaged] : damages(lines, at)) {
      CAPTURE(at, name);
      write(journal, damaged);
      const auto before = files_in(run_1);
      const auto said = Contains("of its journal is damaged: ");
      REQUIRE_THROWS_WITH(go_on(options(folder)), said && Contains("Nothing in it was changed"));
      REQUIRE_THROWS_WITH(tune::resume<trains>(run_1, options(folder)), said);
      REQUIRE_THROWS_WITH(tune::detail::look_at_folder(run_1, 10), said);
      REQUIRE_THROWS_WITH(recorded_schedule(run_1, 0), Contains("journal.jsonl, line "));
      REQUIRE(files_in(run_1) == before);
      REQUIRE_FALSE(fs::exists(folder.path() / "run-2"));
      ++found;
    }
  }
  CHECK(found == 6 * lines.size() - 2);  // the last line is not missing in a way that shows
  write(journal, lines);
  const TemporaryFolder undisturbed;
  CHECK(decisions_of(go_on(options(folder))) == decisions_of(run(options(undisturbed))));
}

TEST_CASE("a journal that lacks its last lines, or has half a line at its end, is gone on with",
          "[tune][resume]") {
  const TemporaryFolder undisturbed;
  const auto expected = decisions_of(run(options(undisturbed)));
  const TemporaryFolder folder;
  const auto run_1 = interrupted(folder);
  const auto whole = content_of(run_1 / "journal.jsonl");
  const auto copy = folder.path() / "copy";
  fs::rename(run_1, copy);
  for (std::size_t bytes = whole.find('\n') + 1; bytes <= whole.size(); bytes += 37) {
    CAPTURE(bytes);
    fs::remove_all(run_1);
    fs::copy(copy, run_1, fs::copy_options::recursive);
    fs::resize_file(run_1 / "journal.jsonl", bytes);
    REQUIRE(decisions_of(go_on(options(folder))) == expected);
  }
}

TEST_CASE("a run whose journal is gone or empty is no new run while something else of it is there",
          "[tune][resume]") {
  const std::string left = GENERATE("snapshot.jsonl", "reports.jsonl", "summary.json", "trials");
  const bool is_gone = GENERATE(true, false);
  CAPTURE(left, is_gone);
  const TemporaryFolder folder;
  const auto run_1 = interrupted(folder, 400);
  fs::create_directory(run_1 / "trials");
  for (const auto* name : {"snapshot.jsonl", "reports.jsonl", "summary.json", "trials"})
    if (name != left) fs::remove_all(run_1 / name);
  fs::remove(run_1 / "journal.jsonl");
  if (!is_gone) std::ofstream(run_1 / "journal.jsonl") << "{\"journal\":5,";
  const auto before = files_in(run_1);
  const auto said = Contains(
      run_1.string() + ": its journal.jsonl is " + (is_gone ? "gone" : "empty") + ", though " +
      left + " of it is there, so that it is no new run. Nothing in it was changed");
  CHECK_THROWS_WITH(go_on(options(folder)), said);
  CHECK_THROWS_WITH(tune::resume<trains>(run_1, options(folder)), said);
  CHECK_THROWS_WITH(tune::detail::look_at_folder(run_1, 10), said);
  CHECK_THROWS_WITH(tune::detail::look_at_folder(folder.path(), 10), said);
  CHECK(files_in(run_1) == before);
  CHECK_FALSE(fs::exists(folder.path() / "run-2"));
  // Nobody asked for the earlier run.
  CHECK(run(options(folder)).folder().filename() == "run-2");
}

TEST_CASE("a damaged summary blocks nobody and is named: the journal says what is left to run",
          "[tune][resume]") {
  const std::string damaged = GENERATE("", "{\"metric\": \"lo", "[]", "{}", "{\"trials\": 3}");
  const bool is_over = GENERATE(true, false);
  CAPTURE(damaged, is_over);
  const TemporaryFolder undisturbed, folder;
  const auto expected = run(options(undisturbed));
  if (is_over) {
    run(options(folder));
  } else {
    interrupted(folder);
  }
  const auto summary = folder.path() / "run-1" / "summary.json";
  std::ofstream(summary) << damaged;
  const auto named = Contains(summary.string() + " is damaged: it is no ");

  const auto seen = tune::detail::look_at_folder(folder.path(), 10);
  CHECK_THAT(seen.outcome.summary, named);
  CHECK(seen.outcome.trials.size() <= expected.trials().size());
  const auto results = go_on(options(folder));
  CHECK_THAT(results.summary(), named);
  CHECK(results.folder().filename() == (is_over ? "run-2" : "run-1"));
  CHECK(decisions_of(results) == decisions_of(expected));
  if (is_over) CHECK(content_of(summary) == damaged);
  if (!is_over) CHECK(last_run(folder.path()).is_over);
}

TEST_CASE("a run that an older Troupe wrote is refused as such by whoever reads it",
          "[tune][resume]") {
  const TemporaryFolder folder;
  const auto run_1 = interrupted(folder);
  auto lines = lines_of(run_1 / "journal.jsonl");
  for (auto& line : lines) line = line.substr(0, line.rfind(",\"number\":")) + "}";
  lines[0].replace(lines[0].find("\"journal\":6"), 11, "\"journal\":4");
  write(run_1 / "journal.jsonl", lines);
  const auto said = Contains("written by an older Troupe: its version is 4, this one reads 6");
  CHECK_THROWS_WITH(
      go_on(options(folder)),
      said && Contains("with the Troupe that began it, or begin a new run without .resume"));
  CHECK_THROWS_WITH(tune::detail::look_at_folder(run_1, 10), said && Contains("cannot be shown"));
  CHECK_THROWS_WITH(recorded_schedule(run_1, 0), said && Contains("journal.jsonl"));
  CHECK(run(options(folder)).folder().filename() == "run-2");
}

TEST_CASE("each damage of a snapshot is found, and nothing changes", "[tune][resume]") {
  const TemporaryFolder folder;
  const auto run_1 = interrupted(folder, 400);
  const auto snapshot = run_1 / "snapshot.jsonl";
  const auto lines = lines_of(snapshot);
  REQUIRE(lines.size() == 2);
  for (std::size_t at = 0; at < 2; ++at) {
    std::map<std::string, Strings> all;
    for (std::size_t byte = 0; byte < lines[at].size(); byte += 29) {
      auto& altered = all["altered at " + std::to_string(byte)] = lines;
      altered[at][byte] = altered[at][byte] == '1' ? '2' : '1';
    }
    all["doubled"] = {lines[0], lines[at], lines[1]};
    all["missing"] = {lines[at]};
    all["exchanged"] = {lines[1], lines[0]};
    for (const auto& [name, damaged] : all) {
      CAPTURE(at, name);
      write(snapshot, damaged);
      const auto before = files_in(run_1);
      REQUIRE_THROWS_WITH(go_on(options(folder)), Contains("snapshot.jsonl cannot be used: "));
      REQUIRE_THROWS_WITH(tune::detail::look_at_folder(run_1, 10), Contains("snapshot"));
      REQUIRE(files_in(run_1) == before);
    }
  }
}

}  // namespace damaged_run_test
