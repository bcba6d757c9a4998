#include <csignal>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "job_support.hpp"

using namespace troupe::test;
using nlohmann::json;

/// `troupe job`: programs that outlive the terminal which started them.

TEST_CASE("a job runs on after the command that submitted it, and is listed with its end",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto seen = cluster.folder() + "/seen";
  const auto submitted =
      job(cluster, {"submit", "--name", "slow", "--", "sh", "-c",
                    "echo begun; until [ -e $0 ]; do sleep 0.02; done; echo done; exit 3", seen});
  CHECK(submitted.exit_code == 0);
  CHECK_THAT(submitted.output, Catch::Contains("slow\n"));
  CHECK(row(cluster, "slow").at("state") == "running");
  job(cluster, {"submit", "--name", "other", "--wait", "--", "true"});
  const auto running = job(cluster, {"status", "slow"});
  CHECK(running.exit_code == 0);
  CHECK_THAT(running.output, Catch::Contains("running") && !Catch::Contains("other"));
  std::ofstream{seen};
  CHECK(is_over(cluster, "slow"));
  const auto over = run(job_command({"status", "slow", "--json"}), job_environment(cluster), kGuard,
                        Streams::Apart);
  CHECK(over.exit_code == 3);
  CHECK(json::parse(over.output) == row(cluster, "slow"));
  CHECK(row(cluster, "slow").at("state") == "failed with exit code 3");
  const auto logs = job(cluster, {"logs", "slow"});
  CHECK_THAT(logs.output, Catch::Contains("begun\n"));
  CHECK_THAT(logs.output, Catch::Contains("done\n"));
  CHECK_THAT(job(cluster, {"list"}).output, Catch::Contains("failed with exit code 3"));
}

TEST_CASE("a job's program is a driver of its cluster", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto done = job(cluster, {"submit", "--wait", "--", TROUPE_PROGRAM, "run", "-n", "2",
                                  "--quiet", "--result", cluster.folder() + "/result", "--", "sh",
                                  "-c", "[ $RANK = 1 ] || echo $WORLD_SIZE > $TROUPE_RESULT_FILE"});
  INFO(done.output);
  CHECK(done.exit_code == 0);
  std::ifstream in(cluster.folder() + "/result");
  int ranks = 0;
  in >> ranks;
  CHECK(ranks == 2);
}

TEST_CASE("a job is stopped, and forgotten", "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster,
      {"submit", "--name", "long", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"});
  const auto again = job(cluster, {"submit", "--name", "long", "--", "true"});
  CHECK(again.exit_code == 1);
  CHECK_THAT(again.output, Catch::Contains("there is a job 'long' already"));
  const auto stopped = job(cluster, {"stop", "long", "--grace", "0.2"});
  CHECK(stopped.exit_code == 0);
  CHECK_THAT(stopped.output, Catch::Contains("long stopped"));
  CHECK(row(cluster, "long").at("state") == "stopped");
  CHECK(job(cluster, {"forget", "long"}).exit_code == 0);
  CHECK(eventually([&] { return row(cluster, "long").is_null(); }));
  const auto missing = job(cluster, {"stop", "long"});
  CHECK(missing.exit_code == 1);
  CHECK_THAT(missing.output, Catch::Contains("there is no job 'long'"));
  const auto unknown = job(cluster, {"status", "long"});
  CHECK(unknown.exit_code == 1);
  CHECK_THAT(unknown.output, Catch::Contains("there is no job 'long'"));
  CHECK(cluster.all_is_free());
}

TEST_CASE("the program of a forgotten job is gone", "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--name", "left", "--env", "MARK_OF_JOB=1", "--", "sleep", "300"});
  CHECK(eventually([] { return !processes_with("MARK_OF_JOB=1").empty(); }));
  CHECK_THAT(job(cluster, {"forget", "left"}).output,
             Catch::Contains("left is listed no more, and what still runs of it is ended"));
  CHECK(eventually([] { return processes_with("MARK_OF_JOB=1").empty(); }));
}

TEST_CASE(
    "a job that cannot be started says so, and the end of a job that is waited for is its own",
    "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto none = job(cluster, {"submit", "--name", "none", "--", "no-such-program"});
  CHECK(none.exit_code == 127);
  CHECK_THAT(none.output, Catch::Contains("could not be started: there is no program"));
  CHECK(is_over(cluster, "none"));
  CHECK_THAT(row(cluster, "none").at("state").get<std::string>(),
             Catch::Contains("could not be started: there is no program 'no-such-program'"));
  const auto not_there = job(cluster, {"submit", "--wait", "--", "no-such-program"});
  CHECK(not_there.exit_code == 127);
  CHECK_THAT(not_there.output, Catch::Contains("could not be started: there is no program"));
  const auto failed =
      job(cluster, {"submit", "--wait", "--name", "five", "--", "sh", "-c", "exit 5"});
  CHECK(failed.exit_code == 5);
  CHECK_THAT(failed.output, Catch::Contains("`troupe job logs five` has what it printed"));
  CHECK(job(cluster, {"submit", "--wait", "--", "sh", "-c", "kill -9 $$"}).exit_code ==
        128 + SIGKILL);
}

TEST_CASE("a job's program that cannot be executed on its node is explained", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto file = cluster.folder() + "/no-program", gone = cluster.folder() + "/gone";
  std::ofstream(file) << "text\n";
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"submit"}, std::vector<std::string>{"submit", "--wait"}}) {
    auto arguments = how;
    arguments.insert(arguments.end(), {"--", file});
    const auto refused = job(cluster, arguments);
    INFO(refused.output);
    CHECK(refused.exit_code == 126);
    CHECK_THAT(refused.output, Catch::Contains("could not be started: '" + file +
                                               "' is not executable: chmod +x it"));
  }
  const auto folder = job(cluster, {"submit", "--wait", "--", cluster.folder()});
  CHECK(folder.exit_code == 126);
  CHECK_THAT(folder.output, Catch::Contains("is a folder"));
  // The command's own working directory is there no more.
  const auto from_gone = "mkdir -p " + gone + " && cd " + gone + " && rmdir " + gone + " && exec " +
                         TROUPE_PROGRAM + " ";
  for (const auto* command : {"job submit -- true", "run -- true"}) {
    const auto lost = run({"sh", "-c", from_gone + command}, job_environment(cluster));
    INFO(command << ": " << lost.output);
    CHECK(lost.exit_code == (std::string_view(command).starts_with("run") ? 125 : 1));
    CHECK_THAT(lost.output,
               Catch::Contains("the working directory of this command cannot be found") &&
                   Catch::Contains("cd to one that is there"));
  }
}

TEST_CASE("a job's program may have many arguments", "[launch][cluster]") {
  const TestCluster cluster(1);
  std::vector<std::string> arguments{
      "submit", "--wait", "--name", "many", "--", "sh", "-c", "exit $(( $# / 1000 ))", "sh"};
  arguments.insert(arguments.end(), 20000, std::string(20, 'x'));
  CHECK(job(cluster, arguments).exit_code == 20);
  CHECK(row(cluster, "many").at("command").get<std::string>().size() > 400000);
}

TEST_CASE("who follows a job's log is let go at the end of its program", "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--name", "short", "--", "sh", "-c", "echo begun; sleep 1; echo last"});
  const auto followed = job(cluster, {"logs", "-f", "short"});
  CHECK(followed.exit_code == 0);
  CHECK_THAT(followed.output,
             Catch::Contains("last\n") && Catch::Contains("troupe: job short has ended\n"));
  const auto unknown = job(cluster, {"logs", "long"});
  CHECK(unknown.exit_code == 1);
  CHECK_THAT(unknown.output, Catch::Contains("there is no job 'long' in this cluster"));
}

TEST_CASE("a job that waits for its place is listed, and starts once there is one",
          "[launch][cluster]") {
  const TestCluster cluster(1, 1);
  const auto submit = [](const std::string& name, const std::string& seconds) {
    return std::vector<std::string>{"submit", "--cpus", "1",     "--name",
                                    name,     "--",     "sleep", seconds};
  };
  CHECK(job(cluster, submit("first", "300")).exit_code == 0);
  auto second = start_job(cluster, submit("second", "0"));
  CHECK(eventually([&] { return state(cluster, "second") == "waits for its place"; }));
  CHECK(state(cluster, "first") == "running");
  CHECK(job(cluster, {"stop", "first"}).exit_code == 0);
  CHECK(job(cluster, {"forget", "first"}).exit_code == 0);
  CHECK(second.wait());
  CHECK(is_over(cluster, "second"));
}

namespace {

/// Processes may be there, without any.
bool has_all_cpus(const TestCluster& cluster) {
  return eventually([&] {
    const auto nodes = json::parse(cluster.status()).at("nodes");
    return std::ranges::all_of(
        nodes, [](const json& node) { return node.at("free") == node.at("total"); });
  });
}

}  // namespace

TEST_CASE("a job that has ended keeps no CPU, and stays listed with its end and its log",
          "[launch][cluster]") {
  const TestCluster cluster(1, 2);
  const auto held = job(cluster, {"submit", "--wait", "--cpus", "2", "--name", "held", "--", "sh",
                                  "-c", "echo said; exit 3"});
  CHECK(held.exit_code == 3);
  CHECK(has_all_cpus(cluster));
  CHECK(
      job(cluster, {"submit", "--wait", "--cpus", "2", "--name", "next", "--", "true"}).exit_code ==
      0);
  CHECK(state(cluster, "held") == "failed with exit code 3");
  CHECK_THAT(job(cluster, {"logs", "held"}).output, Catch::Contains("said\n"));
  CHECK(job(cluster, {"submit", "--name", "held", "--", "true"}).exit_code == 1);
  CHECK(job(cluster, {"forget", "held"}).exit_code == 0);
  CHECK(eventually([&] { return state(cluster, "held") == "not listed"; }));
  CHECK(has_all_cpus(cluster));
}

TEST_CASE("the list shows the beginning of a command, and nothing that steers a terminal",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  const std::string rest(200, 'x');
  job(cluster, {"submit", "--wait", "--name", "long", "--", "true", "a\x1b[2J\nb", rest});
  const auto listed = job(cluster, {"list"}).output;
  INFO(listed);
  CHECK_THAT(listed, Catch::Contains("true a") && Catch::Contains("succeeded"));
  CHECK_THAT(listed, !Catch::Contains("\x1b") && !Catch::Contains(rest));
  CHECK(std::ranges::count(listed, '\n') == 1);
  CHECK(row(cluster, "long").at("command") == "true a\x1b[2J\nb " + rest);
}

TEST_CASE("a job needs a cluster and a program", "[launch]") {
  const TemporaryFolder folder;
  const auto alone = run({TROUPE_PROGRAM, "job", "submit", "--", "true"},
                         {"TROUPE_ADDRESS=", "TROUPE_TOKEN=", "XDG_STATE_HOME=" + folder.path()});
  CHECK(alone.exit_code == 1);
  CHECK_THAT(alone.output, Catch::Contains("no head is known here"));
  CHECK(run({TROUPE_PROGRAM, "job", "submit"}).exit_code == 2);
  for (const auto& name : {std::string("a/b"), std::string(250, 'n')}) {
    const auto named = run({TROUPE_PROGRAM, "job", "submit", "--name", name, "--", "true"});
    CHECK(named.exit_code == 2);
    CHECK_THAT(named.output, Catch::Contains("--name") && !Catch::Contains("troupe-jobs"));
  }
}
