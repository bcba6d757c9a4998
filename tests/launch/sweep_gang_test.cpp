#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "sweep_support.hpp"

using namespace troupe::test;

/// Where the ranks of trials go, and that none of them is left.
namespace {

constexpr const char* kOne = "[space]\nx = { grid = [1] }\n";

Finished tune_on(const TestCluster& cluster, const Sweep& sweep) {
  return sweep.tune("run", {"--address", cluster.address()}, cluster.environment());
}

}  // namespace

TEST_CASE("the ranks of a trial are on nodes that have its labels", "[sweep][cluster]") {
  TestCluster cluster(0);
  for (const std::string zone : {"a", "b"})
    cluster.add_worker({"--cpus", "2", "--name", zone, "--label", "zone=" + zone},
                       {"WHERE=" + zone});
  const Sweep sweep(R"(echo $WHERE > at-$1; echo "troupe: {\"loss\": $1}")",
                    "[gang]\ncpus = 0.5\nlabel = { zone = \"b\" }\n" + std::string(kGrid));
  const auto done = tune_on(cluster, sweep);
  INFO(done.output);
  CHECK(done.exit_code == 0);
  for (const auto* trial : {"1", "2", "3"})
    CHECK(sweep.content(std::string("at-") + trial) == "b\n");
  const Sweep nowhere("true", "[gang]\nlabel = { zone = \"c\" }\n" + std::string(kOne));
  const auto refused = tune_on(cluster, nowhere);
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, Catch::Contains("zone"));
}

TEST_CASE("the ranks of a trial are spread or packed as its strategy says", "[sweep][cluster]") {
  const TestCluster cluster(2);
  const auto nodes = [&](const std::string& strategy) {
    const Sweep sweep(R"([ $RANK = 0 ] || exit 0
echo "troupe: {\"loss\": $GROUP_WORLD_SIZE}")",
                      "[gang]\nranks = 2\ncpus = 0.5\nstrategy = \"" + strategy + "\"\n" + kOne);
    return tune_on(cluster, sweep).output;
  };
  CHECK_THAT(nodes("strict-spread"), Catch::Contains("loss 2"));
  CHECK_THAT(nodes("strict-pack"), Catch::Contains("loss 1"));
}

TEST_CASE("a trial has so many ranks on each node, and one that is stopped leaves none",
          "[sweep][cluster]") {
  const TestCluster cluster(2);
  const Sweep sweep(
      R"(trap 'echo told > told-$RANK; exit' TERM; echo waits
echo "$GROUP_RANK $LOCAL_RANK $LOCAL_WORLD_SIZE $WORLD_SIZE" > seen-$RANK
[ $RANK = 0 ] && until [ -s seen-1 -a -s seen-2 -a -s seen-3 ]; do sleep 0.02; done
[ $RANK = 0 ] && for t in 1 2 3; do echo "troupe: {\"loss\": $t}"; done
while :; do sleep 0.05; done)",
      "[stop]\nreports = 3\n[gang]\nranks = 4\nper_node = 2\n" + std::string(kOne));
  const auto done = tune_on(cluster, sweep);
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(sweep.content("seen-0") == "0 0 2 4\n");
  CHECK(sweep.content("seen-1") == "0 1 2 4\n");
  CHECK(sweep.content("seen-2") == "1 0 2 4\n");
  CHECK(sweep.content("seen-3") == "1 1 2 4\n");
  for (const auto* rank : {"0", "1", "2", "3"}) {
    CHECK(sweep.content(std::string("told-") + rank) == "told\n");
    CHECK_THAT(sweep.content(std::string("runs/run-1/trials/0/output-rank-") + rank + ".log"),
               Catch::Contains("waits"));
  }
  CHECK(sweep.programs().empty());
  CHECK(cluster.all_is_free());
}

TEST_CASE("trials that run at once see GPUs of their own", "[sweep][cluster]") {
  TestCluster cluster(0);
  cluster.add_worker({"--cpus", "2", "--gpus", "2"});
  const auto seen = [](const Sweep& sweep) {
    std::multiset<std::string> gpus;
    for (const auto* trial : {"1", "2"}) gpus.insert(sweep.content(std::string("seen-") + trial));
    return gpus;
  };
  // Each of the pair waits for the other: they run at once.
  const std::string together = R"(echo $CUDA_VISIBLE_DEVICES. > new-$1; mv new-$1 seen-$1
until [ -s seen-1 -a -s seen-2 ]; do sleep 0.02; done
echo "troupe: {\"loss\": $1}")";
  const std::string pair = "[space]\nx = { grid = [1, 2] }\n";
  const Sweep one(together, "[gang]\ngpus = 1\n" + pair);
  const auto done = tune_on(cluster, one);
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK(seen(one) == std::multiset<std::string>{"0.\n", "1.\n"});
  const Sweep none(together, pair);
  CHECK(tune_on(cluster, none).exit_code == 0);
  CHECK(seen(none) == std::multiset<std::string>{".\n", ".\n"});
  // Trials of two GPUs each run one after the other.
  const Sweep both(R"(mkdir busy || exit 3
echo $CUDA_VISIBLE_DEVICES. > seen-$1; rmdir busy
echo "troupe: {\"loss\": $1}")",
                   "[gang]\ngpus = 2\n" + std::string(kGrid));
  CHECK(tune_on(cluster, both).exit_code == 0);
  CHECK(seen(both) == std::multiset<std::string>{"0,1.\n", "0,1.\n"});
  const auto summary = both.summary();
  for (const auto& trial : summary.at("trials")) CHECK(trial.at("status") == "terminated");
  CHECK(cluster.all_is_free());
}

TEST_CASE("all ranks of a trial that is stopped are gone, also one that ignores SIGTERM",
          "[sweep]") {
  const Sweep sweep(
      R"(trap 'echo told > told-$1-$RANK; exit' TERM
[ $RANK = 1 ] && trap '' TERM
echo $$ > pid-$1-$RANK
[ $RANK = 0 ] && until [ -s pid-$1-1 ]; do sleep 0.02; done
[ $RANK = 0 ] && for t in 1 2 3; do echo "troupe: {\"loss\": $1}"; done
while :; do sleep 0.05; done)",
      "grace = 3\n[stop]\nreports = 3\n[gang]\nranks = 2\ncpus = 0.5\n" + std::string(kGrid));
  const auto done = sweep.tune("run");
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("0 errored"));
  for (const std::string trial : {"1", "2", "3"}) {
    CHECK(sweep.content("told-" + trial + "-0") == "told\n");
    for (const auto* rank : {"-0", "-1"}) {
      const auto pid = sweep.content("pid-" + trial + rank);
      REQUIRE_FALSE(pid.empty());
      CHECK_FALSE(is_alive(std::stoi(pid)));
    }
  }
}

TEST_CASE("a rank that fails fails its trial, and the others of its node are ended",
          "[sweep][cluster]") {
  const TestCluster cluster(1);
  const Sweep sweep(R"(echo "troupe: {\"loss\": 1}"; echo words of $RANK
[ $RANK = 1 ] && exit 9
while :; do sleep 0.05; done)",
                    "[gang]\nranks = 2\nper_node = 2\n" + std::string(kOne));
  const auto done = tune_on(cluster, sweep);
  CHECK_THAT(done.output, Catch::Contains("the program ended with exit code 9") &&
                              Catch::Contains("words of 1") && !Catch::Contains("words of 0"));
  CHECK(sweep.programs().empty());
  CHECK(cluster.all_is_free());
}
