#include <chrono>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <catch2/catch.hpp>

#include "support/cluster.hpp"

using namespace troupe::test;

/// Where the ranks of `troupe run` go, and what they find there.
namespace {

Finished run_at(const TestCluster& cluster, std::vector<std::string> arguments,
                const std::vector<std::string>& variables = {}) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run", "--address", cluster.address()});
  auto environment = cluster.environment();
  environment.insert(environment.end(), variables.begin(), variables.end());
  return run(std::move(arguments), environment);
}

/// Workers "a" and "b", of two cores each, with a label of their name, whose programs find WHERE.
void add_two_zones(TestCluster& cluster, const std::vector<std::string>& of_a = {}) {
  for (const std::string zone : {"a", "b"}) {
    auto variables = zone == "a" ? of_a : std::vector<std::string>();
    variables.push_back("WHERE=" + zone);
    cluster.add_worker({"--cpus", "2", "--name", zone, "--label", "zone=" + zone}, variables);
  }
}

}  // namespace

TEST_CASE("a rank for each GPU of the cluster is what -n gpus asks for", "[launch][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "2", "--gpus", "2", "--name", "w1"});
  const auto show = "echo $LOCAL_RANK of $WORLD_SIZE sees $CUDA_VISIBLE_DEVICES.";
  const auto done = run_at(cluster, {"-n", "gpus", "--", "sh", "-c", show});
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("[0] 0 of 2 sees 0,1.\n") &&
                              Catch::Contains("[1] 1 of 2 sees 0,1.\n"));
  const auto isolated = run_at(cluster, {"-n", "gpus", "--isolate-gpus", "--", "sh", "-c", show});
  CHECK_THAT(isolated.output,
             Catch::Contains("[0] 0 of 2 sees 0.\n") && Catch::Contains("[1] 1 of 2 sees 1.\n"));
  const auto pairs = run_at(cluster, {"-n", "gpus", "--gpus", "0.5", "--", "sh", "-c", show});
  CHECK_THAT(pairs.output, Catch::Contains("[1] 1 of 2 sees"));
  CHECK_THAT(run_at(cluster, {"-n", "1", "--", "sh", "-c", show}).output,
             Catch::Contains("[0] 0 of 1 sees .\n"));
  CHECK(cluster.all_is_free());
}

TEST_CASE("ranks go where --label and --strategy send them", "[launch][cluster]") {
  TestCluster cluster(0);
  add_two_zones(cluster);
  const auto show = "echo at $WHERE of $GROUP_WORLD_SIZE";
  for (const std::string zone : {"a", "b"}) {
    const auto done =
        run_at(cluster, {"-n", "2", "--label", "zone=" + zone, "--", "sh", "-c", show});
    CHECK_THAT(done.output, Catch::Contains("[0] at " + zone + " of 1\n") &&
                                Catch::Contains("[1] at " + zone + " of 1\n"));
  }
  CHECK_THAT(
      run_at(cluster, {"-n", "2", "--strategy", "strict-pack", "--", "sh", "-c", show}).output,
      Catch::Contains(" of 1\n"));
  for (const auto* strategy : {"spread", "strict-spread"}) {
    const auto done = run_at(cluster, {"-n", "2", "--strategy", strategy, "--", "sh", "-c", show});
    CHECK_THAT(done.output, Catch::Contains(" at a of 2\n") && Catch::Contains(" at b of 2\n"));
  }
  const auto nowhere = run_at(cluster, {"--label", "zone=c", "--", "true"});
  CHECK(nowhere.exit_code == 125);
  CHECK_THAT(nowhere.output, Catch::Contains("zone"));
  const auto apart = run_at(cluster, {"-n", "3", "--strategy", "strict-spread", "--", "true"});
  CHECK(apart.exit_code == 125);
  CHECK_THAT(apart.output, Catch::Contains("even when idle"));
}

TEST_CASE("an elastic gang counts only the nodes where its ranks may be", "[launch][cluster]") {
  TestCluster cluster(0);
  add_two_zones(cluster);
  const auto size_of = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--", "sh", "-c", "echo $RANK of $WORLD_SIZE"});
    CHECK(cluster.all_is_free());  // of the run before
    const auto done = run_at(cluster, std::move(options));
    INFO(done.output);
    CHECK(done.exit_code == 0);
    return number_after(done.output, "[0] 0 of");
  };
  CHECK(size_of({"-n", "1:8"}) == 4);
  CHECK(size_of({"-n", "1:8", "--label", "zone=a"}) == 2);
  CHECK(size_of({"-n", "1:8", "--strategy", "strict-pack"}) == 2);
  CHECK(size_of({"-n", "1:8", "--strategy", "strict-spread"}) == 2);
  CHECK(size_of({"-n", "1:8", "--per-node", "1"}) == 2);
  CHECK(size_of({"-n", "1:7", "--per-node", "2"}) == 4);
  CHECK(size_of({"--per-node", "1", "--label", "zone=b"}) == 1);
}

TEST_CASE("an elastic gang has fewer ranks where the parts of GPUs that are free are too small",
          "[launch][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "8", "--gpus", "3"});
  const auto holds = [&] {
    return Child({TROUPE_PROGRAM, "run", "--address", cluster.address(), "--gpus", "0.6", "--",
                  "sh", "-c", "echo here; exec sleep 600"},
                 cluster.environment());
  };
  auto one = holds(), other = holds();
  for (auto* holder : {&one, &other}) holder->wait_for_output("[0] here");
  // 1.8 of three GPUs, of which 0.4 are no place for a rank.
  const auto done = run_at(
      cluster, {"-n", "1:2", "--gpus", "0.7", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE"});
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("[0] 0 of 1\n"));
}

TEST_CASE("an elastic gang that waits says why, and keeps its place in the queue",
          "[launch][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "3"});
  const auto start = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "run", "--address", cluster.address()});
    return Child(std::move(arguments), cluster.environment());
  };
  const auto go = cluster.folder() + "/go", second = cluster.folder() + "/second";
  const std::string until = "until [ -e " + go + " ]; do sleep 0.05; done";
  auto first = start({"-n", "3", "--", "sh", "-c", "echo here; " + until});
  first.wait_for_output("[2] here");
  auto elastic = start({"-n", "2:3", "--", "sh", "-c", "[ ! -e " + second + " ] && echo first"});
  elastic.wait_for_output("has waited for");
  CHECK_THAT(elastic.output(), Catch::Contains("cpu"));
  auto fixed = start({"-n", "2", "--", "touch", second});
  fixed.wait_for_output("has waited for");
  std::ofstream(go).put('x');
  for (auto* child : {&first, &elastic, &fixed}) {
    const auto status = child->wait(std::chrono::seconds(60));
    INFO(child->output());
    CHECK(status == 0);
  }
}

TEST_CASE("with --no-env ranks have the environment of their node alone", "[launch][cluster]") {
  TestCluster cluster(0);
  add_two_zones(cluster);
  const auto show = "echo at $WHERE ours $OURS given $GIVEN";
  const std::vector<std::string> ours{"OURS=yes"};
  CHECK_THAT(run_at(cluster, {"--label", "zone=b", "--", "sh", "-c", show}, ours).output,
             Catch::Contains("[0] at b ours yes given\n"));
  CHECK_THAT(
      run_at(cluster, {"--label", "zone=b", "--no-env", "--env", "GIVEN=1", "--", "sh", "-c", show},
             ours)
          .output,
      Catch::Contains("[0] at b ours given 1\n"));
}

TEST_CASE("a program that one of two nodes lacks is told with the node, and ends the others",
          "[launch][cluster]") {
  TestCluster cluster(0);
  const auto folder = cluster.folder() + "/programs", program = folder + "/only-at-a";
  std::filesystem::create_directory(folder);
  std::ofstream(program) << "#!/bin/sh\necho pid $$\nexec sleep 600\n";
  ::chmod(program.c_str(), 0755);
  add_two_zones(cluster, {"PATH=" + folder + ":/usr/bin:/bin"});
  const auto done =
      run_at(cluster, {"-n", "2", "--strategy", "strict-spread", "--no-env", "--", "only-at-a"});
  CHECK(done.exit_code == 127);
  CHECK_THAT(done.output,
             Catch::Matches("[^]*rank [01] on node b \\(127.0.0.1\\) could not be started: "
                            "there is no program 'only-at-a' in its PATH[^]*"));
  CHECK_THAT(done.output, Catch::Contains("the other one was ended"));
  CHECK(cluster.all_is_free());
}

TEST_CASE("a folder that is too large to be sent is refused with what is large in it", "[launch]") {
  const TemporaryFolder folder;
  const auto sent = folder.path() + "/sent", mark = folder.path() + "/mark";
  std::filesystem::create_directories(sent + "/data");
  std::ofstream(sent + "/data/large").put('x');
  std::filesystem::resize_file(sent + "/data/large", std::uintmax_t{600} << 20);  // of holes
  const auto done = run({TROUPE_PROGRAM, "run", "--workdir", sent, "--", "touch", mark},
                        {"TROUPE_ADDRESS=", "TROUPE_TOKEN="});
  CHECK(done.exit_code == 125);
  CHECK_THAT(done.output, Catch::Contains("has more than 512.0 MiB, most of it in data "
                                          "(600.0 MiB)") &&
                              Catch::Contains(".troupeignore"));
  CHECK_FALSE(std::filesystem::exists(mark));
}
