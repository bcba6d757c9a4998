#include <csignal>
#include <string>

#include <catch2/catch.hpp>

#include "job_support.hpp"
#include "terminal.hpp"

using namespace troupe::test;

/// Jobs that wait for their place, whose commands may be gone.
namespace {

constexpr auto kWaits = "waits for its place";

/// A cluster of one core, which a job has.
struct FullCluster : TestCluster {
  FullCluster() : TestCluster(1, 1) {
    CHECK(
        job(*this, {"submit", "--cpus", "1", "--name", "first", "--", "sleep", "300"}).exit_code ==
        0);
  }
  void make_room() const {
    CHECK(job(*this, {"stop", "first"}).exit_code == 0);
    CHECK(job(*this, {"forget", "first"}).exit_code == 0);
  }
  bool waits(const std::string& name) const {
    return eventually([&] { return state(*this, name) == kWaits; });
  }
};

std::vector<std::string> second(const std::string& file, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"submit", "--cpus", "1", "--name", "second"});
  more.insert(more.end(), {"--", "sh", "-c", "echo ran >> " + file + "; echo it ran"});
  return more;
}

}  // namespace

TEST_CASE("a job that waits starts once it has a place, without the command that submitted it",
          "[launch][cluster]") {
  const FullCluster cluster;
  const auto file = cluster.folder() + "/second";
  const auto submitted = job(cluster, second(file));
  CHECK(submitted.exit_code == 0);
  CHECK_THAT(submitted.output,
             Catch::Contains("second\n") && Catch::Contains("it waits for its place"));
  CHECK(state(cluster, "second") == kWaits);
  CHECK_THAT(row(cluster, "second").at("reason").get<std::string>(),
             Catch::Contains("'w1' (node 1) has room for 0 of 1"));
  CHECK_THAT(job(cluster, {"list"}).output, Catch::Contains("waits for its place: "));
  cluster.make_room();
  CHECK(is_over(cluster, "second"));
  CHECK(state(cluster, "second") == "succeeded");
  CHECK(lines_of(file) == 1);
  CHECK_THAT(job(cluster, {"logs", "second"}).output, Catch::Contains("it ran\n"));
}

TEST_CASE("a job that waits outlives kill -9 of the command that waits for it",
          "[launch][cluster]") {
  const FullCluster cluster;
  const auto file = cluster.folder() + "/second";
  auto command = start_job(cluster, second(file, {"--wait"}));
  command.wait_for_output("it waits for its place");
  command.signal(SIGKILL);
  CHECK(command.wait());
  CHECK(state(cluster, "second") == kWaits);
  cluster.make_room();
  CHECK(is_over(cluster, "second"));
  CHECK(state(cluster, "second") == "succeeded");
  CHECK(lines_of(file) == 1);
}

TEST_CASE("a job that waits starts on another machine once its command has gone",
          "[launch][cluster]") {
  if (run({"unshare", "--mount", "true"}).exit_code != 0) {
    WARN("skipped: this user cannot make a mount namespace, which stands for a machine");
    return;
  }
  const FullCluster cluster;
  const auto file = cluster.folder() + "/second";
  CHECK(job(cluster, second(file)).exit_code == 0);
  CHECK(cluster.waits("second"));
  // The cache of this machine has no copy of the program, and nobody is left to send one.
  const auto cache = cluster.folder() + "/cache-of-the-other-machine";
  Child worker({"unshare", "--mount", TROUPE_PROGRAM, "worker", "--head", cluster.address(),
                "--cpus", "1", "--name", "far"},
               job_environment(cluster, {"XDG_CACHE_HOME=" + cache}));
  worker.wait_for_output("of the cluster at");
  CHECK(is_over(cluster, "second"));
  CHECK(state(cluster, "second") == "succeeded");
  CHECK(lines_of(file) == 1);
  CHECK(job(cluster, {"forget", "second"}).exit_code == 0);
  worker.signal(SIGTERM);
  CHECK(worker.wait());
}

TEST_CASE("a submit that is killed at any moment leaves a job that is listed, or nothing",
          "[launch][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "1"}, {"MARK_NODE=1"});
  const auto before = processes_with("MARK_NODE=1").size();
  constexpr int kJobs = 12;
  const auto name = [](int i) { return "job" + std::to_string(i); };
  const auto command = [&](int i) {
    return start_job(cluster, {"submit", "--name", name(i), "--", "sh", "-c", "exit 3"});
  };
  const auto begun = std::chrono::steady_clock::now();
  CHECK(command(kJobs).wait());
  const auto whole = std::chrono::steady_clock::now() - begun;
  for (int i = 0; i < kJobs; ++i) {
    auto submitting = command(i);
    if (submitting.wait(std::chrono::duration_cast<std::chrono::milliseconds>(whole * i / kJobs)))
      continue;
    submitting.signal(i % 2 == 0 ? SIGKILL : SIGINT);
    CHECK(submitting.wait());
  }
  for (int i = 0; i < kJobs; ++i) {
    INFO(name(i) << ": " << state(cluster, name(i)));
    CHECK(eventually([&] {
      const auto now = state(cluster, name(i));
      return now == "not listed" || now == "failed with exit code 3";
    }));
  }
  for (int i = 0; i <= kJobs; ++i) job(cluster, {"forget", name(i)});
  CHECK(cluster.all_is_free());
  CHECK(eventually([&] { return processes_with("MARK_NODE=1").size() == before; }));
}

TEST_CASE("a job that waits outlives its terminal", "[launch][cluster]") {
  const FullCluster cluster;
  const auto file = cluster.folder() + "/second";
  {
    Terminal terminal(job_command(second(file, {"--wait"})), job_environment(cluster));
    terminal.wait_for_output("it waits for its place");
    CHECK(terminal.close() == 128 + SIGHUP);
  }
  CHECK(state(cluster, "second") == kWaits);
  cluster.make_room();
  CHECK(is_over(cluster, "second"));
  CHECK(lines_of(file) == 1);
}

TEST_CASE("a job that waits is stopped and forgotten, and never starts", "[launch][cluster]") {
  const FullCluster cluster;
  const auto file = cluster.folder() + "/second";
  auto command = start_job(cluster, second(file, {"--wait"}));
  command.wait_for_output("it waits for its place");
  CHECK(cluster.waits("second"));
  const auto logs = job(cluster, {"logs", "second"});
  CHECK(logs.exit_code == 0);
  CHECK_THAT(logs.output, Catch::Contains("second waits for its place, and has printed nothing"));
  const auto again = job(cluster, {"submit", "--name", "second", "--", "true"});
  CHECK(again.exit_code == 1);
  CHECK_THAT(again.output, Catch::Contains("there is a job 'second' already"));

  const auto stopped = job(cluster, {"stop", "second"});
  CHECK(stopped.exit_code == 0);
  CHECK_THAT(stopped.output, Catch::Contains("second stopped"));
  CHECK(state(cluster, "second") == "stopped");
  const auto status = command.wait();
  REQUIRE(status);
  CHECK(WEXITSTATUS(*status) == 1);
  CHECK_THAT(command.output(), Catch::Contains("second stopped"));
  CHECK(job(cluster, {"forget", "second"}).exit_code == 0);
  CHECK(eventually([&] { return state(cluster, "second") == "not listed"; }));

  job(cluster, second(file));
  CHECK(cluster.waits("second"));
  CHECK(job(cluster, {"forget", "second"}).exit_code == 0);
  CHECK(eventually([&] { return state(cluster, "second") == "not listed"; }));
  cluster.make_room();
  CHECK(cluster.all_is_free());
  CHECK(lines_of(file) == 0);
}

TEST_CASE("who follows the log of a job that waits sees what it prints once it runs",
          "[launch][cluster]") {
  const FullCluster cluster;
  job(cluster, second(cluster.folder() + "/second"));
  auto followed = start_job(cluster, {"logs", "-f", "second"});
  followed.wait_for_output("waits for its place");
  cluster.make_room();
  const auto status = followed.wait();
  REQUIRE(status);
  CHECK(*status == 0);
  CHECK_THAT(followed.output(), Catch::Contains("it ran\n"));
}

TEST_CASE("a job that can have no place is refused, and not listed", "[launch][cluster]") {
  const TestCluster cluster(1, 1);
  const auto refused = job(cluster, {"submit", "--cpus", "64", "--name", "large", "--", "true"});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, Catch::Contains("cpu 64"));
  CHECK(eventually([&] { return state(cluster, "large") == "not listed"; }));
  CHECK(cluster.all_is_free());
}
