#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;
using nlohmann::json;

namespace {

/// Where and when: group, track, nanoseconds.
using Moment = std::tuple<int, int, std::int64_t>;

Moment moment_of(const json& event) {
  return {event.at("pid"), event.at("tid"), std::llround(event.at("ts").get<double>() * 1000)};
}

/// The events of a trace, as a viewer takes them.
struct Trace {
  explicit Trace(const std::string& path) : whole(json::parse(std::ifstream(path))) {
    for (const auto& event : whole.at("traceEvents")) {
      const auto phase = event.at("ph").get<std::string>();
      if (phase == "X") spans.push_back(event);
      if (phase == "s") begins.emplace(event.at("id").get<int>(), moment_of(event));
      if (phase == "f") ends.emplace(moment_of(event), event.at("id").get<int>());
      if (event.at("name") == "thread_name")
        tracks[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
      if (event.at("name") == "process_name") groups[event.at("pid")] = event.at("args").at("name");
    }
  }

  std::vector<json> named(const std::string& name) const {
    std::vector<json> found;
    for (const auto& span : spans) {
      if (span.at("name").get<std::string>().ends_with(name) && span.at("cat") != "call")
        found.push_back(span);
    }
    return found;
  }
  std::string track_of(const json& span) const {
    return tracks.at({span.at("pid"), span.at("tid")});
  }
  /// The calls from which an arrow leads to the beginning of this run.
  std::vector<json> calls_of(const json& run) const {
    std::vector<json> calls;
    for (auto [end, last] = ends.equal_range(moment_of(run)); end != last; ++end) {
      for (const auto& span : spans) {
        if (span.at("cat") == "call" && moment_of(span) == begins.at(end->second))
          calls.push_back(span);
      }
    }
    return calls;
  }

  json whole;
  std::vector<json> spans;
  std::map<int, Moment> begins;     // of arrows, by their id
  std::multimap<Moment, int> ends;  // and where they lead
  std::map<std::pair<int, int>, std::string> tracks;
  std::map<int, std::string> groups;
};

Finished write_timeline(const TestCluster& cluster, const std::string& file,
                        const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{TROUPE_PROGRAM, "timeline", file};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(std::move(arguments), cluster.environment());
}

/// What holds of every trace; a program of Python says what does not.
void check(const std::string& file) {
  const auto checked = run({"python3", TROUPE_CHECK_TIMELINE, file}, {}, std::chrono::seconds(60));
  INFO(checked.output);
  CHECK(checked.exit_code == 0);
}

Child driver(const TestCluster& cluster, const std::string& what) {
  return Child({TROUPE_TEST_TIMELINE_DRIVER, what}, cluster.environment());
}

}  // namespace

TEST_CASE("a timeline has what two nodes have run, for whom, and what was killed",
          "[cli][cluster][timeline]") {
  TestCluster cluster(2);
  const TemporaryFolder folder;
  const auto file = folder.path() + "/out.json";
  auto all = driver(cluster, "all");
  REQUIRE(all.wait() == 0);
  const auto written = write_timeline(cluster, file);
  INFO(written.output);
  REQUIRE(written.exit_code == 0);
  CHECK_THAT(written.output, Catch::Contains("on 2 nodes"));
  check(file);

  const Trace trace(file);
  CHECK(trace.groups.at(1).find("(w1)") != std::string::npos);
  CHECK(trace.groups.at(2).find("(w2)") != std::string::npos);
  CHECK(trace.groups.at(0) == "drivers");
  CHECK(trace.named("::branch").size() == 4);
  CHECK(trace.named("::leaf").size() == 8);
  CHECK(trace.named("Counter::add").size() == 400);
  std::set<int> nodes;
  for (const auto& span : trace.named("Counter::add")) {
    nodes.insert(span.at("pid").get<int>());
    CHECK_THAT(trace.track_of(span), Catch::Contains("Counter, ended"));
  }
  CHECK(nodes == std::set<int>{1, 2});

  const auto waits = trace.named("waits");
  CHECK(waits.size() >= 4);
  REQUIRE(trace.named("::throws").size() == 1);
  CHECK(trace.named("::throws")[0].at("args").at("failed") == true);
  REQUIRE(trace.named("::dies").size() == 1);
  CHECK(trace.named("::dies")[0].at("args").at("unfinished") == "its process ended");
  // Tasks that tasks have called are called from their tracks.
  for (const auto& leaf : trace.named("::leaf")) {
    const auto caller = leaf.at("args").at("caller").get<std::string>();
    CHECK(std::ranges::any_of(trace.named("::branch"), [&](const json& branch) {
      return trace.track_of(branch).starts_with(caller + " ");
    }));
  }
}

TEST_CASE("an arrow leads from each call to its run", "[cli][cluster][timeline]") {
  TestCluster cluster(2);
  const TemporaryFolder folder;
  const auto file = folder.path() + "/out.json";
  auto all = driver(cluster, "all");
  REQUIRE(all.wait() == 0);
  REQUIRE(write_timeline(cluster, file).exit_code == 0);
  check(file);

  const Trace trace(file);
  CHECK(trace.begins.size() == trace.ends.size());
  for (const std::string name : {"::branch", "::leaf", "::throws", "Counter::add"}) {
    for (const auto& run : trace.named(name)) {
      const auto calls = trace.calls_of(run);
      INFO(run.dump(2));
      REQUIRE(trace.ends.count(moment_of(run)) == 1);
      // Each end of the arrow is in the track of the process that the other end names. Others may have
      // been called at the same moment.
      const auto call = std::ranges::find_if(calls, [&](const json& one) {
        return one.at("args").at("callee") == "process " + run.at("tid").dump();
      });
      REQUIRE(call != calls.end());
      CHECK(call->at("name") == "call " + run.at("name").get<std::string>());
      CHECK(run.at("args").at("caller") == "process " + call->at("tid").dump());
      const bool by_driver = trace.groups.at(call->at("pid")) == "drivers";
      CHECK(by_driver == (name != "::leaf"));
    }
  }
}

TEST_CASE("a timeline has what runs now, and of one job or the last seconds where asked",
          "[cli][cluster][timeline]") {
  TestCluster cluster(1);
  const TemporaryFolder folder;
  const auto file = folder.path() + "/out.json";
  auto all = driver(cluster, "all");
  REQUIRE(all.wait() == 0);
  auto running = driver(cluster, "forever");
  running.wait_for_output("forever");

  REQUIRE(write_timeline(cluster, file).exit_code == 0);
  check(file);
  {
    const Trace trace(file);
    const auto span = trace.named("::forever");
    REQUIRE(span.size() == 1);
    CHECK(span[0].at("args").at("unfinished") == "it runs");
    CHECK_FALSE(trace.named("::leaf").empty());
    CHECK(std::ranges::any_of(trace.tracks, [](const auto& track) {
      return track.second.starts_with("driver of job 2: test_timeline_driver");
    }));
  }
  REQUIRE(write_timeline(cluster, file, {"--job", "2"}).exit_code == 0);
  check(file);
  CHECK(Trace(file).named("::leaf").empty());
  CHECK(Trace(file).named("::forever").size() == 1);

  // All that the first driver has run has ended: only what runs is of the last moment.
  REQUIRE(write_timeline(cluster, file, {"--last", "0.001"}).exit_code == 0);
  check(file);
  CHECK(Trace(file).named("::leaf").empty());
  CHECK(Trace(file).named("::forever").size() == 1);
  running.signal(SIGKILL);
}

TEST_CASE("what ended nodes have left is drawn without a head", "[cli][cluster][timeline]") {
  const TemporaryFolder folder;
  const auto file = folder.path() + "/out.json";
  const auto state = "XDG_STATE_HOME=" + folder.path();
  REQUIRE(run({TROUPE_TEST_TIMELINE_DRIVER, "all"}, {state}).exit_code == 0);
  const auto written =
      run({TROUPE_PROGRAM, "timeline", file, "--from", folder.path() + "/troupe/private-logs"},
          {state});
  INFO(written.output);
  REQUIRE(written.exit_code == 0);
  check(file);
  CHECK(Trace(file).named("::leaf").size() == 8);
  CHECK(Trace(file).named("::dies").size() == 1);
}

TEST_CASE("the file of a timeline is named alone, or with -o as other tools have it, and not twice",
          "[cli][timeline]") {
  TestCluster cluster(1);
  const auto file = cluster.folder() + "/out.json";
  CHECK(write_timeline(cluster, "-o", {file}).exit_code == 0);
  check(file);
  const auto none = run({TROUPE_PROGRAM, "timeline"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.output, Catch::StartsWith("troupe timeline: OUT is required: the file to write"));
  CHECK(write_timeline(cluster, file, {"-o", file}).exit_code == 2);
}

TEST_CASE("a cluster in which nothing has run has an empty timeline", "[cli][cluster][timeline]") {
  TestCluster cluster(1);
  const TemporaryFolder folder;
  const auto file = folder.path() + "/out.json";
  const auto written = write_timeline(cluster, file);
  CHECK_THAT(written.output,
             Catch::Contains("0 calls of 0 processes") &&
                 Catch::Contains("nothing is recorded: no worker process of this cluster has run a "
                                 "call yet; " +
                                 file + " has none"));
  CHECK(written.exit_code == 0);
  CHECK(Trace(file).spans.empty());
  CHECK(write_timeline(cluster, "/no/such/folder/out.json").exit_code == 1);
  // A limit of the size of files is what a full disk looks like: the older file survives it.
  std::ofstream(file) << "an older file";
  const auto full =
      run({"sh", "-c", "trap '' XFSZ; ulimit -f 0; exec " + TROUPE_PROGRAM + " timeline " + file},
          cluster.environment());
  CHECK(full.exit_code == 1);
  CHECK_THAT(full.output, Catch::Contains("out.json' cannot be written (File too large)"));
  CHECK(std::filesystem::file_size(file) == std::string("an older file").size());
  const auto of_nobody = folder.path() + "/of_nobody.json";
  const auto unknown = write_timeline(cluster, of_nobody, {"--job", "77"});
  CHECK(unknown.exit_code == 1);
  CHECK_THAT(unknown.output, Catch::Contains("there is no job 77"));
  CHECK(write_timeline(cluster, of_nobody, {"--job", "77", "--from", folder.path()}).exit_code ==
        1);
  CHECK_FALSE(std::ifstream(of_nobody).is_open());
  CHECK(write_timeline(cluster, file, {"--last", "0"}).exit_code == 2);
}
