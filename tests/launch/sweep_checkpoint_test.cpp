#include <map>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "sweep_support.hpp"

using namespace troupe::test;
using nlohmann::json;

/// Trials that go on from checkpoints. Each program draws a token as it begins anew, which is its
/// process id, and keeps it in its checkpoints alone: a later process that reports the token of an
/// earlier one has read it there.
namespace {

/// `more`: what the program does after each report; $t is the step.
std::string counts_to(int last, const std::string& more = "") {
  return "t=0; token=$$; [ -n \"$TROUPE_RESTORE_FROM\" ] && . \"$TROUPE_RESTORE_FROM/state\"\n"
         "while [ $t -lt " +
         std::to_string(last) +
         " ]; do\n"
         "  t=$((t+1)); mkdir -p $TROUPE_CHECKPOINT_DIR/$t\n"
         "  echo \"t=$t token=$token\" > $TROUPE_CHECKPOINT_DIR/$t/state\n"
         "  echo \"troupe: {\\\"loss\\\": $1, \\\"step\\\": $t, \\\"token\\\": $token, "
         "\\\"pid\\\": $$, "
         "\\\"checkpoint\\\": \\\"$t\\\"}\"\n" +
         more + "\n  sleep 0.05\ndone";
}

std::vector<json> lines_of(const Sweep& sweep, const std::string& file) {
  std::istringstream in(sweep.content("runs/run-1/" + file));
  std::vector<json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

/// What a trial's program reported.
struct Report {
  int t = 0;
  int step = 0;
  int token = 0;
  int pid = 0;
};
std::map<int, std::vector<Report>> reports_of(const Sweep& sweep) {
  std::map<int, std::vector<Report>> found;
  for (const auto& line : lines_of(sweep, "reports.jsonl")) {
    const auto& metrics = line.at("metrics");
    found[line.at("trial").get<int>()].push_back(
        {line.at("t").get<int>(), metrics.at("step").get<int>(), metrics.at("token").get<int>(),
         metrics.at("pid").get<int>()});
  }
  return found;
}

template <class Member>
std::set<int> all(const std::vector<Report>& reports, Member member) {
  std::set<int> found;
  for (const auto& report : reports) found.insert(report.*member);
  return found;
}

/// Each step once and in order, whichever process made it.
bool is_whole(const std::vector<Report>& reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].step != static_cast<int>(i) + 1 || reports[i].t != reports[i].step) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a trial that is promoted goes on from its checkpoint in another process", "[sweep]") {
  // One after the other: which of them pause does not depend on how fast each is.
  const Sweep sweep(counts_to(4),
                    "trials = 6\nmax_concurrent = 1\n"
                    "[scheduler]\ntype = \"asha\"\nmax_t = 4\neta = 2\npromote = true\n"
                    "[gang]\ncpus = 1\n[space]\nx = { uniform = [0.0, 1.0] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output << sweep.content("runs/run-1/reports.jsonl"));
  CHECK(done.exit_code == 0);
  int promoted = 0, finished = 0;
  for (const auto& [trial, reports] : reports_of(sweep)) {
    CAPTURE(trial);
    CHECK(is_whole(reports));
    CHECK(all(reports, &Report::token).size() == 1);
    if (all(reports, &Report::pid).size() > 1) ++promoted;
    if (reports.back().step == 4) ++finished;
  }
  CHECK(promoted >= 2);  // three go beyond the first rung, and may do so at once
  CHECK(finished >= 1);
  CHECK(sweep.programs().empty());
}

TEST_CASE("a trial of a population goes on from the checkpoint of the trial that it copies",
          "[sweep]") {
  const Sweep sweep(counts_to(8),
                    "trials = 4\n[scheduler]\ntype = \"pbt\"\ninterval = 2\nmax_t = 8\n"
                    "synchronous = true\n[gang]\ncpus = 0.5\n"
                    "[space]\nx = { uniform = [0.0, 1.0] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output << sweep.content("runs/run-1/reports.jsonl")
                   << sweep.content("runs/run-1/pbt.jsonl"));
  CHECK(done.exit_code == 0);
  auto reports = reports_of(sweep);
  const auto token_at = [&](int trial, int t) {
    for (const auto& report : reports.at(trial)) {
      if (report.t == t) return report.token;
    }
    return 0;
  };
  const auto takeovers = lines_of(sweep, "pbt.jsonl");
  REQUIRE_FALSE(takeovers.empty());
  for (const auto& takeover : takeovers) {
    const int t = takeover.at("t"), to = takeover.at("to");
    const int from = takeover.at("from"), from_t = takeover.at("from_t");
    CAPTURE(t, from, from_t, to);
    CHECK(token_at(to, t + 1) != 0);
    CHECK(token_at(to, t + 1) == token_at(from, from_t));
    CHECK(token_at(to, t + 1) != token_at(to, t));
  }
  for (const auto& [trial, of_trial] : reports) CHECK(is_whole(of_trial));
}

TEST_CASE("a trial that failed is tried again from its last checkpoint", "[sweep]") {
  const Sweep sweep(counts_to(4, "[ $t = 2 -a $token = $$ ] && exit 3"),
                    "max_failures = 1\n[space]\nx = { grid = [1, 2] }\n");
  const auto done = sweep.tune("run");
  INFO(done.output << sweep.content("runs/run-1/reports.jsonl"));
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("2 terminated, 0 stopped, 0 errored"));
  for (const auto& [trial, reports] : reports_of(sweep)) {
    CAPTURE(trial);
    CHECK(reports.size() == 4);
    CHECK(is_whole(reports));
    CHECK(all(reports, &Report::token).size() == 1);
    CHECK(all(reports, &Report::pid).size() == 2);
  }
  const Sweep hopeless(counts_to(4, "[ $t = 3 ] && exit 3; [ $t = 4 ] && exit 4"),
                       "max_failures = 1\n[space]\nx = { grid = [1] }\n");
  const auto failed = hopeless.tune("run");
  CHECK_THAT(failed.output, Catch::Contains("exit code 4"));
  CHECK_THAT(failed.output, Catch::Contains("1 errored"));
}
