#include <algorithm>
#include <csignal>
#include <string>

#include <catch2/catch.hpp>

#include "guard.hpp"
#include "job_support.hpp"
#include "process_stat.hpp"
#include "stopped.hpp"

using namespace troupe::test;
using nlohmann::json;

/// `troupe job status` of a job that is silent, or was lost a moment ago: a script that waits for 0
/// must not take either for a job that runs.
namespace {

pid_t process_of(const TestCluster& cluster, const std::string& actor) {
  const auto found = actor_named(cluster, actor);
  REQUIRE(!found.is_null());
  return found.at("pid").get<pid_t>();
}

std::string node_of(const TestCluster& cluster, const std::string& actor) {
  const auto found = actor_named(cluster, actor);
  REQUIRE(!found.is_null());
  return "w" + std::to_string(found.at("node").get<int>());
}

/// Jobs that hold all CPUs of a cluster of two nodes with one each, and one that waits.
void submit_and_wait_for_place(const TestCluster& cluster) {
  for (const auto* name : {"first", "second"})
    job(cluster, {"submit", "--cpus", "1", "--name", name, "--", "sleep", "300"});
  job(cluster, {"submit", "--cpus", "1", "--name", "third", "--", "true"});
  REQUIRE(job(cluster, {"status", "third"}).exit_code == 0);
  REQUIRE(state(cluster, "third") == "waits for its place");
}

/// The head may have heard of the end of the job's process, and not yet of that of its node.
void check_lost(int exit_code, const std::string& told, const std::string& node) {
  INFO(told);
  CHECK(exit_code == 1);
  CHECK_THAT(told, Catch::Contains(" lost with node " + node + " at 20") ||
                       Catch::Contains(" lost at 20"));
}

/// Kills the node of a job, and asks for the job once its process has ended, which the head may not
/// know.
void ask_after_loss(TestCluster& cluster, const std::string& name, const std::string& actor) {
  const auto node = node_of(cluster, actor);
  const auto process = process_of(cluster, actor);
  worker_named(cluster, node).signal(SIGKILL);
  REQUIRE(gone_within(process, kGuard));
  const auto told = job(cluster, {"status", name});
  check_lost(told.exit_code, told.output, node);
}

/// Kills the node of a job while `troupe job status` waits for an answer from it.
void lose_as_it_is_asked(TestCluster& cluster, const std::string& name, const std::string& actor) {
  const Stopped silent(process_of(cluster, actor));
  const auto node = node_of(cluster, actor);
  auto asking = start_job(cluster, {"status", name});
  REQUIRE(eventually([&] {
    const auto drivers = json::parse(cluster.status()).at("jobs");
    return std::ranges::any_of(drivers,
                               [](const json& one) { return one.at("name") == "troupe job"; });
  }));
  worker_named(cluster, node).signal(SIGKILL);
  const auto status = asking.wait();
  REQUIRE(status);
  check_lost(WEXITSTATUS(*status), asking.output(), node);
}

}  // namespace

TEST_CASE("the status of a silent job says so and ends with 1", "[launch][cluster]") {
  const TestCluster cluster(2, 1);
  submit_and_wait_for_place(cluster);
  const Stopped running(process_of(cluster, "troupe-jobs/first"));
  const Stopped waiting(process_of(cluster, "troupe-jobs-waiting/third"));
  auto first = start_job(cluster, {"status", "first"}),
       third = start_job(cluster, {"status", "third"});
  for (auto* asking : {&first, &third}) {
    const auto status = asking->wait();
    INFO(asking->output());
    REQUIRE(status);
    CHECK(WEXITSTATUS(*status) == 1);
    CHECK_THAT(asking->output(), Catch::Contains("does not answer"));
  }
  CHECK(job(cluster, {"status", "second"}).exit_code == 0);
}

TEST_CASE("the status of a job is that of a lost one once its node is killed",
          "[launch][cluster]") {
  for (const auto& lose : {ask_after_loss, lose_as_it_is_asked}) {
    INFO((lose == ask_after_loss ? "killed before it is asked" : "killed while it is asked"));
    {
      TestCluster cluster(2);
      job(cluster, {"submit", "--name", "gone", "--", "sleep", "300"});
      lose(cluster, "gone", "troupe-jobs/gone");
    }
    TestCluster cluster(2, 1);
    submit_and_wait_for_place(cluster);
    lose(cluster, "third", "troupe-jobs-waiting/third");
  }
}

TEST_CASE("a program that is no job is refused with the command that shows its log",
          "[launch][cluster][refusal]") {
  const TestCluster cluster(1);
  job(cluster, {"submit", "--name", "long", "--", "sleep", "300"});
  const auto program = json::parse(cluster.status()).at("jobs").at(0);
  const auto number = program.at("job").dump();
  for (const auto* what : {"status", "logs", "stop", "forget"}) {
    const auto refused = job(cluster, {what, number});
    INFO(what << ": " << refused.output);
    CHECK(refused.exit_code == 1);
    CHECK_THAT(refused.output, Catch::Contains("'" + number + "' is the number of the program " +
                                               program.at("name").get<std::string>() +
                                               ", and no job of `troupe job`: `troupe logs job " +
                                               number + "` has"));
  }
}
