#include <csignal>
#include <string>

#include <catch2/catch.hpp>

#include "job_support.hpp"
#include "stopped.hpp"
#include "support/hosts.hpp"
#include "terminal.hpp"

using namespace troupe::test;
using nlohmann::json;

/// What ends a job, and what does not: nodes, links, and the commands that look at it.
namespace {

bool becomes(const TestCluster& cluster, const std::string& name, const std::string& expected) {
  return eventually([&] { return state(cluster, name) == expected; });
}

std::string waits_for(const std::string& file, const std::string& then) {
  return "while [ ! -e " + file + " ]; do sleep 0.05; done; " + then;
}

void touch(const std::string& file) { std::ofstream(file) << "\n"; }

}  // namespace

TEST_CASE("a job whose node is lost is listed with that until it is forgotten",
          "[launch][cluster]") {
  TestCluster cluster(2);
  job(cluster, {"submit", "--name", "gone", "--", "sleep", "300"});
  const auto node = row(cluster, "gone").at("node").get<std::string>();
  auto waiting = start_job(cluster, {"submit", "--wait", "--name", "other", "--", "true"});
  CHECK(waiting.wait());
  worker_named(cluster, node).signal(SIGKILL);
  CHECK(becomes(cluster, "gone", "lost with node " + node));
  const auto listed = row(cluster, "gone");
  CHECK(listed.at("node") == node);
  CHECK(listed.at("is_over") == true);
  CHECK(listed.at("ended").get<double>() > 1.7e9);
  CHECK_THAT(job(cluster, {"list"}).output, Catch::Contains("lost with node " + node + " at 20"));
  const auto stopped = job(cluster, {"stop", "gone"});
  CHECK(stopped.exit_code == 1);
  CHECK_THAT(stopped.output, Catch::Contains("the job 'gone' was lost: "));
  const auto again = job(cluster, {"submit", "--name", "gone", "--", "true"});
  CHECK(again.exit_code == 1);
  CHECK_THAT(again.output, Catch::Contains("there is a job 'gone' already"));
  CHECK(job(cluster, {"forget", "gone"}).exit_code == 0);
  CHECK(state(cluster, "gone") == "not listed");
  CHECK(job(cluster, {"forget", "gone"}).exit_code == 1);
  CHECK(job(cluster, {"submit", "--wait", "--name", "gone", "--", "true"}).exit_code == 0);
}

namespace {

/// A job that has ended is listed as before once its node has left by `signal`, with what became of
/// its log.
void check_end_behind_node(int signal) {
  TestCluster cluster(2);
  CHECK(
      job(cluster, {"submit", "--wait", "--name", "done", "--", "sh", "-c", "exit 3"}).exit_code ==
      3);
  const auto node = row(cluster, "done").at("node").get<std::string>();
  worker_named(cluster, node).signal(signal);
  const auto gone = "its log went with node " + node;
  REQUIRE(eventually([&] { return row(cluster, "done").at("reason") == gone; }));
  const auto listed = row(cluster, "done");
  INFO(listed.dump());
  CHECK(listed.at("state") == "failed with exit code 3");
  CHECK(listed.at("exit_code") == 3);
  CHECK(listed.at("command") == "sh -c exit 3");
  CHECK(listed.at("ended").get<double>() >= listed.at("started").get<double>());
  CHECK(listed.at("node") == node);
  CHECK_THAT(job(cluster, {"list"}).output,
             Catch::Contains("sh -c exit 3: failed with exit code 3; " + gone + "\n"));
  const auto stopped = job(cluster, {"stop", "done"});
  CHECK(stopped.exit_code == 0);
  CHECK_THAT(stopped.output, Catch::Contains("done failed with exit code 3"));
  for (const auto& logs : {job(cluster, {"logs", "done"}), job(cluster, {"logs", "-f", "done"})}) {
    CHECK(logs.exit_code == 1);
    CHECK_THAT(logs.output, Catch::Contains("the job 'done' has ended") && Catch::Contains(gone));
  }
  CHECK(job(cluster, {"forget", "done"}).exit_code == 0);
  CHECK(state(cluster, "done") == "not listed");
}

}  // namespace

TEST_CASE("a job that had ended before its node was lost is listed with its end",
          "[launch][cluster]") {
  check_end_behind_node(SIGKILL);
}

TEST_CASE("a job that had ended before its node left in order is listed with its end",
          "[launch][cluster]") {
  check_end_behind_node(SIGTERM);
}

TEST_CASE("a job whose own process is killed after its end is listed with its end",
          "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--wait", "--name", "done", "--", "true"});
  const auto actor = actor_named(cluster, "troupe-jobs/done");
  REQUIRE(!actor.is_null());
  REQUIRE(kill(actor.at("pid").get<pid_t>(), SIGKILL) == 0);
  REQUIRE(eventually([&] { return row(cluster, "done").at("reason") != ""; }));
  CHECK(state(cluster, "done") == "succeeded");
  CHECK(row(cluster, "done").at("reason") ==
        "its log is on node w1, though the job's own process has ended");
}

TEST_CASE("who waits for a job is told that it was lost with its node", "[launch][cluster]") {
  TestCluster cluster(2);
  auto waiting = start_job(cluster, {"submit", "--wait", "--name", "gone", "--", "sleep", "300"});
  CHECK(becomes(cluster, "gone", "running"));
  worker_named(cluster, row(cluster, "gone").at("node").get<std::string>()).signal(SIGKILL);
  const auto status = waiting.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 1);
  CHECK_THAT(waiting.output(), Catch::Contains("the job 'gone' was lost: "));
}

TEST_CASE("a job that waits is lost with the node that keeps it, and listed with that",
          "[launch][cluster]") {
  TestCluster cluster(2, 1);
  for (const auto* name : {"first", "second"})
    job(cluster, {"submit", "--cpus", "1", "--name", name, "--", "sleep", "300"});
  job(cluster, {"submit", "--cpus", "1", "--name", "third", "--", "true"});
  REQUIRE(state(cluster, "third") == "waits for its place");
  const auto keeper = actor_named(cluster, "troupe-jobs-waiting/third");
  REQUIRE(!keeper.is_null());
  const auto node = "w" + std::to_string(keeper.at("node").get<int>());
  worker_named(cluster, node).signal(SIGKILL);
  CHECK(becomes(cluster, "third", "lost with node " + node));
  CHECK(job(cluster, {"forget", "third"}).exit_code == 0);
  CHECK(state(cluster, "third") == "not listed");
}

TEST_CASE("a job whose own process is killed is listed as lost", "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--name", "killed", "--env", "MARK_KILLED=1", "--", "sleep", "300"});
  const auto actor = actor_named(cluster, "troupe-jobs/killed");
  REQUIRE(!actor.is_null());
  REQUIRE(kill(actor.at("pid").get<pid_t>(), SIGKILL) == 0);
  CHECK(becomes(cluster, "killed", "lost"));
  CHECK_THAT(row(cluster, "killed").at("reason").get<std::string>(), Catch::Contains("signal 9"));
  CHECK(eventually([] { return processes_with("MARK_KILLED=1").empty(); }));
}

TEST_CASE("who follows the log of a job is told that the job was lost", "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--name", "killed", "--", "sh", "-c", "echo begun; sleep 300"});
  auto following = start_job(cluster, {"logs", "-f", "killed"});
  following.wait_for_output("begun");
  const auto actor = actor_named(cluster, "troupe-jobs/killed");
  REQUIRE(!actor.is_null());
  REQUIRE(kill(actor.at("pid").get<pid_t>(), SIGKILL) == 0);
  const auto status = following.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 1);
  CHECK_THAT(following.output(),
             Catch::Contains("the job 'killed' was lost: ") && !Catch::Contains("has ended"));
}

TEST_CASE("a job whose own process does not answer is not waited for", "[launch][cluster]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--name", "silent", "--", "sleep", "300"});
  const auto actor = actor_named(cluster, "troupe-jobs/silent");
  REQUIRE(!actor.is_null());
  const Stopped own(actor.at("pid").get<pid_t>());
  auto stopping = start_job(cluster, {"stop", "silent"});
  auto looking = start_job(cluster, {"logs", "silent"});
  for (auto* command : {&stopping, &looking}) {
    const auto status = command->wait(std::chrono::seconds(60));
    REQUIRE(status);
    CHECK(WEXITSTATUS(*status) == 1);
    CHECK_THAT(command->output(), Catch::Contains("the job 'silent' does not answer") &&
                                      Catch::Contains("`troupe job forget silent` kills it"));
  }
}

TEST_CASE("a job runs on where the commands that follow it are killed", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto go = cluster.folder() + "/go";
  auto waiting = start_job(cluster, {"submit", "--wait", "--name", "long", "--", "sh", "-c",
                                     "echo begun; " + waits_for(go, "echo done; exit 3")});
  CHECK(becomes(cluster, "long", "running"));
  auto following = start_job(cluster, {"logs", "-f", "long"});
  following.wait_for_output("begun");
  for (auto* command : {&waiting, &following}) {
    command->signal(SIGKILL);
    CHECK(command->wait());
  }
  CHECK(state(cluster, "long") == "running");
  touch(go);
  CHECK(is_over(cluster, "long"));
  CHECK(state(cluster, "long") == "failed with exit code 3");
  CHECK_THAT(job(cluster, {"logs", "long"}).output,
             Catch::Contains("begun\n") && Catch::Contains("done\n"));
}

TEST_CASE("a job runs on where the terminals of its commands are closed", "[launch][cluster]") {
  const TestCluster cluster(1);
  const auto go = cluster.folder() + "/go";
  {
    Terminal waiting(job_command({"submit", "--wait", "--name", "long", "--", "sh", "-c",
                                  "echo begun; " + waits_for(go, "echo done")}),
                     job_environment(cluster));
    waiting.wait_for_output("long");
    CHECK(becomes(cluster, "long", "running"));
    Terminal following(job_command({"logs", "-f", "long"}), job_environment(cluster));
    following.wait_for_output("begun");
    CHECK(waiting.close() == 128 + SIGHUP);
    CHECK(following.close() == 128 + SIGHUP);
  }
  CHECK(state(cluster, "long") == "running");
  touch(go);
  CHECK(is_over(cluster, "long"));
  CHECK(state(cluster, "long") == "succeeded");
}

namespace {

Finished job_on_first(const Scene& scene, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "job"});
  return run(scene.hosts.on_first(std::move(arguments)), scene.near_environment);
}

std::string state_on_first(const Scene& scene, const std::string& name) {
  const auto listed = printed_by(scene.hosts.on_first({TROUPE_PROGRAM, "job", "list", "--json"}),
                                 scene.near_environment);
  for (const auto& one : json::parse(listed)) {
    if (one.at("job") == name) return one.at("state").get<std::string>();
  }
  return "not listed";
}

bool becomes_on_first(const Scene& scene, const std::string& name, const std::string& expected) {
  return eventually([&] { return state_on_first(scene, name) == expected; });
}

void stop_cluster(const Scene& scene) {
  CHECK(run(scene.hosts.on_first({TROUPE_PROGRAM, "stop"}), scene.near_environment).exit_code == 0);
}

}  // namespace

TEST_CASE("a job runs on where the link to the host that submitted it is cut",
          "[launch][network]") {
  const Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "1"});
  const auto go = scene.near.path() + "/go";
  const auto address = scene.address();
  const auto on_second = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "job"});
    return Child(scene.hosts.on_second(std::move(arguments)), scene.far_environment);
  };
  auto waiting = on_second({"submit", "--wait", "--address", address, "--name", "long", "--workdir",
                            scene.far.path() + "/troupe", "--", "sh", "-c",
                            "echo begun; " + waits_for(go, "echo done; exit 3")});
  waiting.wait_for_output("long\n");
  auto following = on_second({"logs", "-f", "--address", address, "long"});
  following.wait_for_output("begun");
  REQUIRE(scene.hosts.change_second("link set " + TwoHosts::second_device() + " down"));
  // The head misses them within 20 s; the job is to outlast that.
  CHECK(eventually([&] {
    const auto status = printed_by(scene.hosts.on_first({TROUPE_PROGRAM, "status", "--json"}),
                                   scene.near_environment);
    const auto jobs = json::parse(status).at("jobs");
    return std::ranges::none_of(jobs,
                                [](const json& one) { return one.at("name") == "troupe job"; });
  }));
  CHECK(state_on_first(scene, "long") == "running");
  touch(go);
  CHECK(becomes_on_first(scene, "long", "failed with exit code 3"));
  stop_cluster(scene);
}

TEST_CASE("a job whose node is cut off ends there, and is listed as lost with that node",
          "[launch][network]") {
  const Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--no-node"});
  Child worker(scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus",
                                      "1", "--name", "far", "--head-silence", "20"}),
               scene.far_environment);
  worker.wait_for_output("of the cluster at");
  CHECK(job_on_first(scene, {"submit", "--name", "cut", "--workdir", scene.near.path() + "/troupe",
                             "--env", "MARK_CUT=1", "--", "sleep", "300"})
            .exit_code == 0);
  CHECK(becomes_on_first(scene, "cut", "running"));
  REQUIRE(scene.hosts.change_second("link set " + TwoHosts::second_device() + " down"));
  CHECK(becomes_on_first(scene, "cut", "lost with node far"));
  CHECK(worker.wait());
  CHECK(eventually([] { return processes_with("MARK_CUT=1").empty(); }));
  stop_cluster(scene);
}
