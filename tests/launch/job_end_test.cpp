#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "job_support.hpp"
#include "support/hosts.hpp"

using namespace troupe::test;

/// What is left of a job once it has ended: nothing that runs.

TEST_CASE("what a job's program has left ends with the program, whatever its session",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto done = job(
      cluster, {"submit", "--wait", "--name", "leaves", "--env", "MARK_LEFT=1", "--", "sh", "-c",
                "setsid sleep 300 & setsid sh -c 'sleep 300 & sleep 300' & "
                "(trap '' TERM HUP; sleep 300) & sleep 0.3; exit 4"});
  CHECK(done.exit_code == 4);
  CHECK(processes_with("MARK_LEFT=1").empty());
  CHECK(state(cluster, "leaves") == "failed with exit code 4");
}

TEST_CASE("a job that succeeds says how many processes its program left running",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  const std::string told = "2 processes that it left running were killed";
  const auto ready = cluster.folder() + "/ready";
  const auto begins = [&](const std::string& name) {
    return "setsid sh -c ': > " + ready + name + "; exec sleep 300' & ";
  };
  const auto done = job(
      cluster, {"submit", "--wait", "--name", "leaves", "--env", "MARK_KEPT=1", "--", "sh", "-c",
                begins("1") + begins("2") + "sleep 300 & until [ -e " + ready + "1 ] && [ -e " +
                    ready + "2 ]; do sleep 0.01; done; exit 0"});
  CHECK(done.exit_code == 0);
  CHECK(processes_with("MARK_KEPT=1").empty());
  CHECK_THAT(done.output, Catch::Contains("troupe: leaves has ended; " + told + "\n"));
  CHECK(state(cluster, "leaves") == "succeeded");
  CHECK(row(cluster, "leaves").at("left_processes") == 2);
  CHECK_THAT(job(cluster, {"status", "leaves"}).output,
             Catch::Contains(": succeeded; " + told + "\n"));
  CHECK(job(cluster, {"logs", "leaves"}).output ==
        "troupe: the job's program has ended; " + told + ": a job ends with its program\n");
}

TEST_CASE("what a job's program leaves in its own process group, or a stop ends, is not told",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto ready = cluster.folder() + "/ready";
  const auto done = job(cluster, {"submit", "--wait", "--name", "group", "--", "sh", "-c",
                                  "sleep 300 & sleep 300 & exit 0"});
  CHECK(done.exit_code == 0);
  CHECK(row(cluster, "group").at("left_processes") == 0);
  CHECK_THAT(job(cluster, {"logs", "group"}).output, !Catch::Contains("has ended"));

  job(cluster, {"submit", "--name", "stopped", "--", "sh", "-c",
                "setsid sh -c 'trap \"\" TERM; : > " + ready + "; exec sleep 300' & sleep 300"});
  CHECK(eventually([&] { return std::filesystem::exists(ready); }));
  CHECK(job(cluster, {"stop", "stopped", "--grace", "0.1"}).exit_code == 0);
  CHECK(row(cluster, "stopped").at("left_processes") == 0);
}

TEST_CASE("a job that is stopped leaves nothing that runs", "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--name", "stubborn", "--env", "MARK_STOPPED=1", "--", "sh", "-c",
                "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & "
                "trap '' TERM; echo begun; while :; do sleep 0.1; done"});
  CHECK(eventually([] { return processes_with("MARK_STOPPED=1").size() >= 4; }));
  const auto stopped = job(cluster, {"stop", "stubborn", "--grace", "0.2"});
  CHECK(stopped.exit_code == 0);
  CHECK(processes_with("MARK_STOPPED=1").empty());
  CHECK(state(cluster, "stubborn") == "stopped");
}

TEST_CASE("what a stopped job's program has left has the rest of the grace, and no more",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto asked = cluster.folder() + "/asked";
  const auto ready = cluster.folder() + "/ready";
  job(cluster, {"submit", "--name", "asks", "--env", "MARK_ASKED=1", "--", "sh", "-c",
                "setsid sh -c 'trap \"sleep 0.5; touch " + asked + "; exit\" TERM; touch " + ready +
                    "; while :; do sleep 0.05; done' & sleep 300"});
  CHECK(eventually([&] { return std::filesystem::exists(ready); }));
  CHECK(job(cluster, {"stop", "asks", "--grace", "20"}).exit_code == 0);
  CHECK(std::filesystem::exists(asked));
  CHECK(processes_with("MARK_ASKED=1").empty());
}

TEST_CASE("a job reaps what its program leaves while that runs", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto left = cluster.folder() + "/left";
  job(cluster, {"submit", "--name", "forks", "--", "sh", "-c",
                "(setsid sh -c 'echo $$ > " + left + "' &); sleep 300"});
  CHECK(eventually([&] { return std::filesystem::exists(left); }));
  CHECK(eventually([&] {
    const auto pid = read_line(left);
    return !pid.empty() && !std::filesystem::exists("/proc/" + pid);
  }));
  CHECK(state(cluster, "forks") == "running");
}

TEST_CASE("a job that has ended keeps one process, and does not count among what still runs",
          "[launch][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "1"}, {"MARK_NODE=1"});
  const auto processes = [] { return processes_with("MARK_NODE=1").size(); };
  const auto before = processes();
  for (const auto* name : {"first", "second"})
    CHECK(job(cluster, {"submit", "--wait", "--name", name, "--", "true"}).exit_code == 0);
  CHECK(eventually([&] { return processes() == before + 2; }));
  CHECK(state(cluster, "first") == "succeeded");
  CHECK(job(cluster, {"logs", "first"}).exit_code == 0);
  CHECK(job(cluster, {"forget", "first"}).exit_code == 0);
  CHECK(eventually([&] { return processes() == before + 1; }));

  CHECK(job(cluster, {"submit", "--name", "long", "--", "sleep", "300"}).exit_code == 0);
  const auto stopped = run({TROUPE_PROGRAM, "stop"}, cluster.environment());
  CHECK(stopped.exit_code == 0);
  CHECK_THAT(stopped.output, Catch::Contains("ended 1 job: long\n") && !Catch::Contains("second"));
  CHECK(cluster.worker(0).wait());
  CHECK(cluster.head().wait());
}
