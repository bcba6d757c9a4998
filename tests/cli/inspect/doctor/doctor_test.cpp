#include <csignal>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "doctor/examined.hpp"
#include "stopped.hpp"

using namespace troupe::test;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("every note and every problem has a remedy, and the exit code says whether there is one",
          "[cli][doctor]") {
  const Alone alone;
  const auto examined = alone.doctor();
  std::size_t problems = 0, notes = 0;
  for (const auto& finding : examined.report.at("findings")) {
    INFO(finding);
    const auto level = finding.at("level").get<std::string>();
    problems += level == "problem" ? 1 : 0;
    notes += level == "note" ? 1 : 0;
    CHECK((level == "ok" || level == "note" || level == "problem"));
    CHECK(finding.at("remedy").get<std::string>().empty() == (level == "ok"));
    CHECK_FALSE(finding.at("value").get<std::string>().empty());
  }
  CHECK(examined.report.at("problems") == problems);
  CHECK(examined.report.at("notes") == notes);
  CHECK(examined.exit_code == (problems == 0 ? 0 : 1));
  for (const char* what :
       {"troupe", "kernel", "glibc", "g++", "open files (ulimit -n)", "locked memory (ulimit -l)",
        "processes and threads (ulimit -u)", "/dev/shm", "memory", "cores", "memory limit", "NCCL",
        "state folder", "spill folder", "token", "head", "port 7420", "clock"}) {
    INFO(what);
    CHECK_FALSE(examined.finding(what).is_null());
  }
  CHECK(examined.level("state folder") == "ok");
  CHECK(fs::is_empty(alone.folder.path()));
}

TEST_CASE("the doctor's findings are a line each, with the remedy in the next", "[cli][doctor]") {
  const Alone alone;
  const auto done = run({TROUPE_PROGRAM, "doctor", "--address", "127.0.0.1:1"}, alone.environment);
  INFO(done.output);
  CHECK(done.exit_code == 1);
  CHECK_THAT(done.output,
             Catch::Contains("ok       troupe: ") && Catch::Contains("problem  head: ") &&
                 Catch::Contains("\n         -> look whether `troupe head` runs there"));
}

TEST_CASE("the doctor finds a token that others can read", "[cli][doctor]") {
  const Alone alone;
  const auto file = alone.folder.path() + "/token";
  std::ofstream(file) << std::string(64, 'a') << std::flush;
  fs::permissions(file, fs::perms(0600));
  CHECK(alone.doctor({"--token-file", file}).level("token") == "ok");
  fs::permissions(file, fs::perms(0644));
  const auto examined = alone.doctor({"--token-file", file});
  CHECK(examined.exit_code == 1);
  CHECK(examined.level("token") == "problem");
  CHECK_THAT(examined.finding("token").at("remedy").get<std::string>(),
             Catch::Contains("chmod 600 " + file));
  CHECK(alone.doctor({"--token-file", file + "-not-there"}).level("token") == "problem");
}

TEST_CASE("the doctor finds a state folder that cannot be written, and few open files",
          "[cli][doctor]") {
  const Alone alone;
  std::ofstream(alone.folder.path() + "/file");
  const auto examined = examine(
      {TROUPE_PROGRAM, "doctor", "--json"},
      {"XDG_STATE_HOME=" + alone.folder.path() + "/file", "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  CHECK(examined.exit_code == 1);
  CHECK(examined.level("state folder") == "problem");
  const auto limited =
      examine({"/bin/sh", "-c", "ulimit -n 100; exec " + TROUPE_PROGRAM + " doctor --json"},
              alone.environment);
  CHECK(limited.exit_code == 1);
  CHECK(limited.level("open files (ulimit -n)") == "problem");
}

TEST_CASE("an address that a dead head has left is a note with the file to remove",
          "[cli][doctor]") {
  const Alone alone;
  fs::create_directories(alone.folder.path() + "/troupe");
  std::ofstream(alone.folder.path() + "/troupe/address") << "127.0.0.1:1\n";
  const auto head = alone.doctor().finding("head");
  CHECK(head.at("level") == "note");
  CHECK_THAT(head.at("remedy").get<std::string>(),
             Catch::Contains("remove " + alone.folder.path() + "/troupe/address"));
}

TEST_CASE("a head that stands still is a problem, and not one that has ended",
          "[cli][cluster][doctor]") {
  TestCluster cluster(0);
  const Stopped head(cluster.head().pid());
  // Standard error says of each attempt that there is another.
  const auto done = run({"/bin/sh", "-c", "exec " + TROUPE_PROGRAM + " doctor --json 2> /dev/null"},
                        cluster.environment());
  const auto asked = run({TROUPE_PROGRAM, "list", "nodes"}, cluster.environment());
  CHECK(asked.exit_code == 1);
  CHECK_THAT(asked.output, Catch::Contains("too busy or stopped (tried 3 times)"));
  CHECK_THAT(asked.output, !Catch::Contains("remove that file"));
  CHECK(done.exit_code == 1);
  const Examined examined{done.exit_code, json::parse(done.output)};
  CHECK(examined.level("head") == "problem");
  CHECK_THAT(examined.finding("head").at("remedy").get<std::string>(),
             Catch::Contains("kill -CONT"));
}

TEST_CASE("the doctor asks the head of its nodes, its clock, and who shares a machine",
          "[cli][cluster][doctor]") {
  TestCluster cluster(2, 1);
  auto examined = doctor(cluster);
  CHECK(examined.level("head") == "ok");
  CHECK(examined.level("node 1 (w1)") == "ok");
  CHECK(examined.level("node 2 (w2)") == "ok");
  CHECK(examined.level("nodes of one machine") == "ok");
  CHECK(examined.level("clock") == "ok");
  CHECK_THAT(examined.finding("clock").at("value").get<std::string>(),
             Catch::Contains("the head's is "));
  cluster.add_worker({"--name", "all"});
  examined = doctor(cluster);
  CHECK(examined.level("nodes of one machine") == "note");
  CHECK_THAT(examined.finding("nodes of one machine").at("remedy").get<std::string>(),
             Catch::Contains("--cpus"));
}

TEST_CASE("the doctor tells of a node that has fallen silent", "[cli][cluster][doctor]") {
  TestCluster cluster(1);
  {
    const Stopped silent(cluster.worker(0).agent());
    CHECK(eventually([&] { return doctor(cluster).level("node 1 (w1)") == "note"; }));
  }
  CHECK(eventually([&] { return doctor(cluster).level("node 1 (w1)") == "ok"; }));
}

TEST_CASE("the doctor tells a head of Troupe on the port from another program",
          "[cli][cluster][doctor]") {
  TestCluster cluster(0);
  Child beside({TROUPE_PROGRAM, "head", "--no-node", "--state-dir", cluster.folder() + "/beside"},
               {"XDG_STATE_HOME=" + cluster.folder(), "TROUPE_TOKEN=", "TROUPE_ADDRESS="});
  bool has_ended = false;
  const auto listens = [&] { return beside.output().find("token file:") != std::string::npos; };
  REQUIRE(eventually([&] {
    has_ended = beside.wait(std::chrono::milliseconds(20)).has_value();
    return has_ended || listens();
  }));
  if (!listens()) {
    WARN("skipped: something listens on port 7420 already");
    return;
  }
  const auto port = doctor(cluster).finding("port 7420");
  CHECK(port.at("level") == "note");
  CHECK_THAT(port.at("value").get<std::string>(),
             Catch::Contains("in use at 127.0.0.1 by the head of cluster "));
  CHECK_THAT(port.at("remedy").get<std::string>(),
             Catch::Contains("use it with --address 127.0.0.1:7420"));
  const Alone alone;
  const auto other = alone.doctor().finding("port 7420");
  CHECK_THAT(other.at("value").get<std::string>(),
             Catch::Contains("by a head or a worker of Troupe with another token"));
  CHECK(other.at("level") == "note");
  beside.signal(SIGTERM);
  CHECK(beside.wait());
}
