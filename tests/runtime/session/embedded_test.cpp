#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "eventually.hpp"
#include "functions.hpp"
#include "guard.hpp"
#include "process_stat.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// What is free in the whole cluster is what there is.
bool all_is_free(const Cluster& cluster) {
  const auto status = nlohmann::json::parse(cluster.status_json());
  for (const auto& node : status["nodes"]) {
    if (node["free"] != node["total"]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a task runs in another process and its value comes back", "[runtime][session]") {
  auto cluster = init({.cpus = 2});
  CHECK(task<fib>(20).get(kGuard) == 6765);
  CHECK(task<process_id>().get(kGuard) != getpid());
  CHECK(task<[](std::string s) { return s + "!"; }>("hello").get(kGuard) == "hello!");
}

TEST_CASE("a private cluster is reached by a unix socket, and says which", "[runtime][session]") {
  auto cluster = init({.cpus = 1});
  CHECK_THAT(cluster.address(), Catch::StartsWith("unix socket @") && !Catch::EndsWith("@"));
}

TEST_CASE("a spill directory that cannot be used is refused before anything starts",
          "[runtime][session][store]") {
  auto folder = (std::filesystem::temp_directory_path() / "troupe-spill-test-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()));
  std::ofstream(folder + "/file") << "no folder";
  const std::vector<std::pair<std::string, std::string>> unusable{
      {folder + "/missing/spill", "there is no folder " + folder + "/missing"},
      {folder + "/file", "that is no folder"},
      {"/proc/self", ""},  // where root too makes nothing
  };
  for (const auto& [path, why] : unusable) {
    INFO(path);
    try {
      const auto cluster = init({.cpus = 1, .spill_directory = path});
      FAIL("it was taken");
    } catch (const Refused& refused) {
      CHECK_THAT(refused.what(),
                 Catch::Contains("'" + path + "' (InitOptions::spill_directory): " + why) &&
                     Catch::Contains("name a folder that can be written"));
    }
  }
  CHECK_FALSE(std::filesystem::exists(folder + "/missing"));
  {
    const auto cluster = init({.cpus = 1, .spill_directory = folder + "/made/"});
    CHECK(std::filesystem::is_directory(folder + "/made"));
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("an actor keeps its state between calls, which run in the order made",
          "[runtime][session]") {
  auto cluster = init({.cpus = 2});
  auto counter = spawn<Counter>(10);
  std::vector<Ref<int>> totals;
  for (int i = 1; i <= 100; ++i) totals.push_back(counter.call<&Counter::add>(i));
  int expected = 10;
  for (int i = 1; i <= 100; ++i) CHECK(totals[i - 1].get(kGuard) == (expected += i));
}

TEST_CASE("a ref is as good as a value, and travels as a ref too", "[runtime][session]") {
  auto cluster = init({.cpus = 2});
  auto f = task<fib>(15);
  auto counter = spawn<Counter>(1);
  CHECK(counter.call<&Counter::add>(f).get(kGuard) == 611);
  CHECK(task<twice>(task<twice>(put(5))).get(kGuard) == 20);
  CHECK(task<sum>(put(std::vector<int>{1, 2, 3})).get(kGuard) == 6);
  CHECK(task<reads_a_ref>(put(41)).get(kGuard) == 42);
  CHECK(task<reads_a_ref>(task<makes_a_ref>(40).get(kGuard)).get(kGuard) == 42);
}

TEST_CASE("wait returns as soon as enough values are there", "[runtime][session]") {
  auto cluster = init({.cpus = 2});
  Gate gate;
  std::vector<Ref<int>> refs{task<wait_at>(gate.path()), task<sleeps>(1)};
  const auto found = wait(refs, 1, kGuard);
  REQUIRE(found.ready.size() == 1);
  CHECK(found.ready.front().get() == 1);
  CHECK_FALSE(refs[0].try_get());
  CHECK_THROWS_AS(refs[0].get(1ms), TimedOut);
}

TEST_CASE("an exception comes home with its type, its text and its place", "[runtime][session]") {
  auto cluster = init({.cpus = 1});
  try {
    task<fails>("no such row").get(kGuard);
    FAIL("nothing was thrown");
  } catch (const TaskError& error) {
    CHECK(error.type() == "std::out_of_range");
    CHECK(error.failure().message == "no such row");
    CHECK_THAT(error.where(), Catch::Contains("fails") && Catch::Contains("on node 1"));
  }
}

TEST_CASE("an actor whose constructor throws fails its calls with that", "[runtime][session]") {
  auto cluster = init({.cpus = 1});
  auto counter = spawn<Counter>(-1);
  CHECK_THROWS_AS(counter.ready().get(kGuard), TaskError);
  CHECK_THROWS_WITH(counter.call<&Counter::add>(1).get(kGuard), Catch::Contains("starts at 0"));
}

TEST_CASE("an actor that is killed before it has a process fails its calls with ActorDied",
          "[runtime][session][failure]") {
  auto cluster = init({.cpus = 1});
  const auto holder = with({.cpus = 1}).spawn<Counter>(0);
  holder.ready().get(kGuard);
  const auto waiting = with({.cpus = 1}).spawn<Counter>(0);
  const auto call = waiting.call<&Counter::add>(1);
  waiting.kill();
  CHECK_THROWS_AS(call.get(kGuard), ActorDied);
  CHECK_THROWS_AS(waiting.ready().get(kGuard), ActorDied);
  CHECK(holder.call<&Counter::add>(1).get(kGuard) == 1);
}

TEST_CASE("a task that waits for tasks it started, ten deep on one CPU, finishes",
          "[runtime][session]") {
  auto cluster = init({.cpus = 1});
  CHECK(task<nested>(10).get(kGuard) == 10);
  CHECK(eventually([&] { return all_is_free(cluster); }));
}

TEST_CASE("the head does not go on looking for an actor that nobody waits for any more",
          "[runtime][session]") {
  auto cluster = init({.cpus = 1});
  const auto searches = [&] {
    return nlohmann::json::parse(cluster.status_json())["tables"]["searches for actors"].get<int>();
  };
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(find<Counter>("nobody", 20ms), TimedOut);
  CHECK(eventually([&] { return searches() == 0; }));
}

TEST_CASE("an actor handle travels, and a named actor is found", "[runtime][session]") {
  auto cluster = init({.cpus = 4});
  auto counter = with({.name = "total"}).spawn<Counter>(5);
  CHECK(task<adds_for>(counter, 2).get(kGuard) == 7);
  CHECK(find<Counter>("total").call<&Counter::add>(1).get(kGuard) == 8);
  CHECK_THROWS_AS(find<Rank>("total", kGuard), Refused);
  CHECK_THROWS_WITH(find<Counter>("nobody", 200ms), Catch::Contains("nobody"));
  auto second = with({.name = "total"}).spawn<Counter>(0);
  CHECK_THROWS_AS(second.ready().get(kGuard), Refused);
  CHECK_THROWS_WITH(
      second.ready().get(kGuard),
      Catch::Contains(" of job 1, which is this program's own: find() returns it, and "
                      "find_or_spawn() makes one only where there is none"));
}

TEST_CASE(
    "an actor that waits for a call of its own is told so, one that does not wait gets it done",
    "[runtime][session][failure]") {
  auto cluster = init({.cpus = 2});
  auto loner = spawn<Loner>();
  for (int i = 0; i < 3; ++i) {
    try {
      loner.call<&Loner::waits_for_itself>(loner).get(kGuard);
      FAIL("nothing was thrown");
    } catch (const TaskError& error) {
      CHECK(error.type() == "std::logic_error");
      CHECK_THAT(error.what(), Catch::Contains("this actor waits for itself") &&
                                   Catch::Contains("Return the Ref"));
    }
  }
  CHECK_THROWS_WITH(loner.call<&Loner::waits_for_itself_briefly>(loner).get(kGuard),
                    Catch::Contains("not there within") && Catch::Contains("waits for itself"));
  CHECK(loner.call<&Loner::waits_for_one_of>(loner).get(kGuard) == 1);
  const int before = loner.call<&Loner::count>().get(kGuard);
  CHECK(loner.call<&Loner::asks_itself>(loner).get(kGuard).get(kGuard) == before + 1);
}

TEST_CASE("what no node can ever hold is refused at once, with the closest node",
          "[runtime][session]") {
  auto cluster = init({.cpus = 2, .gpus = 0});
  CHECK_THROWS_AS(with({.gpus = 1}).task<twice>(1).get(kGuard), Impossible);
  CHECK_THROWS_WITH(with({.gpus = 1}).task<twice>(1).get(kGuard),
                    Catch::StartsWith("troupe::test::twice can never be placed: ") &&
                        Catch::Contains("gpu 1") && Catch::Contains("node 1"));
  CHECK_THROWS_WITH(with({.cpus = 64}).spawn<Counter>(1).ready().get(kGuard),
                    Catch::StartsWith("actor troupe::test::Counter can never be placed: ") &&
                        Catch::Contains("cpu 64") && Catch::Contains("node 1"));
  CHECK_THROWS_WITH(with({.cpus = 64, .name = "big"}).spawn<Counter>(1).ready().get(kGuard),
                    Catch::StartsWith("actor troupe::test::Counter 'big' can never be placed: "));
  CHECK_THROWS_WITH(
      gang<Rank>({.size = 2, .each = {.cpus = 2}}),
      Catch::StartsWith("a gang of 2 ranks (troupe::test::Rank) can never be placed: "));
}

TEST_CASE("a worker process killed in a call: ActorDied with the signal, and its CPU is free again",
          "[runtime][session][failure]") {
  auto cluster = init({.cpus = 1});
  auto counter = with({.cpus = 1}).spawn<Counter>(0);
  const int pid = counter.call<&Counter::pid>().get(kGuard);
  auto call = counter.call<&Counter::die>(SIGKILL);
  try {
    call.get(kGuard);
    FAIL("nothing was thrown");
  } catch (const ActorDied& died) {
    CHECK(died.signal() == SIGKILL);
    CHECK_THAT(died.what(), Catch::Contains(std::to_string(pid)) && Catch::Contains("signal 9"));
    CHECK_THAT(died.what(), Catch::StartsWith("troupe::test::Counter::die ") &&
                                Catch::Contains(": actor troupe::test::Counter: process "));
  }
  CHECK_THROWS_AS(counter.call<&Counter::add>(1).get(kGuard), ActorDied);
  CHECK(eventually([&] { return all_is_free(cluster); }));
}

TEST_CASE("an exit in user code is reported with its code", "[runtime][session][failure]") {
  auto cluster = init({.cpus = 1});
  auto counter = spawn<Counter>(0);
  try {
    counter.call<&Counter::leave>(7).get(kGuard);
    FAIL("nothing was thrown");
  } catch (const ActorDied& died) {
    CHECK(died.signal() == 0);
    CHECK(died.exit_code() == 7);
  }
}

TEST_CASE("a task that kills its process is tried again, then reported",
          "[runtime][session][failure]") {
  auto cluster = init({.cpus = 1});
  try {
    with({.retries = 1}).task<dies_by>(SIGUSR1).get(kGuard);
    FAIL("nothing was thrown");
  } catch (const ProcessDied& died) {
    CHECK(died.signal() == SIGUSR1);
    CHECK_THAT(died.what(), Catch::Contains("ended 2 processes"));
  }
  CHECK_THROWS_WITH(with({.retries = 0}).task<dies_by>(SIGUSR1).get(kGuard),
                    Catch::StartsWith("troupe::test::dies_by has no try left: process "));
  CHECK(task<twice>(4).get(kGuard) == 8);
}

TEST_CASE("the ranks of a gang know each other", "[runtime][session][gang]") {
  auto cluster = init({.cpus = 4});
  auto ranks = gang<Rank>({.size = 3});
  CHECK(get(ranks.all<&Rank::rank>()) == std::vector<int>{0, 1, 2});
  CHECK(get(ranks.all<&Rank::size>()) == std::vector<int>{3, 3, 3});
  CHECK(get(ranks.all<&Rank::node>()) == std::vector<std::uint32_t>{1, 1, 1});
  CHECK(get(ranks.all<&Rank::host>()) == std::vector<std::string>(3, "127.0.0.1"));
  CHECK(get(ranks.all<&Rank::exchanges>()) ==
        std::vector<std::string>{"hello 1", "hello 2", "hello 0"});
}

TEST_CASE("what a rank throws says which rank threw it", "[runtime][session][gang]") {
  auto cluster = init({.cpus = 2});
  const auto ranks = gang<Rank>({.size = 2});
  try {
    ranks.rank(1).call<&Rank::throws>().get(kGuard);
    FAIL("nothing was thrown");
  } catch (const TaskError& error) {
    CHECK_THAT(error.where(), Catch::Contains("Rank::throws, rank 1 of 2, process "));
  }
}

TEST_CASE("an actor sees its own GPUs, and a gang's ranks see those of their gang",
          "[runtime][session][gang]") {
  auto cluster = init({.cpus = 8, .gpus = 4});  // numbers only: nothing here touches a GPU
  CHECK(task<visible_gpus>().get(kGuard).empty());
  auto one = with({.gpus = 1}).spawn<Counter>(0);
  auto half = with({.gpus = 0.5}).spawn<Counter>(0);
  auto other_half = with({.gpus = 0.5}).spawn<Counter>(0);
  const auto own = one.call<&Counter::gpus>().get(kGuard);
  const auto shared = half.call<&Counter::gpus>().get(kGuard);
  CHECK(own.size() == 1);
  CHECK(shared == other_half.call<&Counter::gpus>().get(kGuard));
  CHECK(shared != own);

  auto ranks = gang<Rank>({.size = 2, .each = {.gpus = 1}});
  const auto seen = get(ranks.all<&Rank::gpus>());
  CHECK(seen[0] == seen[1]);
  CHECK(seen[0].size() == 3);  // "2,3"
  CHECK(seen[0].find(own) == std::string::npos);
  CHECK(get(ranks.all<&Rank::local_rank>()) == std::vector<int>{0, 1});
}

TEST_CASE("a rank killed in a gang: the others leave their waits, long before these are over",
          "[runtime][session][gang][failure]") {
  auto cluster = init({.cpus = 3});
  for (const std::size_t victim : {1, 0}) {  // rank 0 keeps what the others wait for
    INFO("rank " << victim);
    auto ranks = gang<Rank>({.size = 3});
    const auto pids = get(ranks.all<&Rank::pid>());
    auto waiting = ranks.all<&Rank::waits_for>("what nobody sets");
    kill(pids[victim], SIGKILL);
    CHECK_THROWS_AS(waiting[1 - victim].get(kGuard), GangBroken);
    CHECK_THROWS_WITH(waiting[2].get(kGuard),
                      Catch::Contains("rank " + std::to_string(victim) + " is gone"));
    CHECK_THROWS_AS(waiting[victim].get(kGuard), ActorDied);
  }
  CHECK(eventually([&] { return all_is_free(cluster); }));
}

TEST_CASE("two gangs that each could get half of the cluster both finish",
          "[runtime][session][gang]") {
  auto cluster = init({.cpus = 4});
  auto once = [] { return get(gang<Rank>({.size = 3}).all<&Rank::exchanges>()).size(); };
  std::vector<std::size_t> sizes(2);
  std::thread other([&] { sizes[1] = once(); });
  sizes[0] = once();
  other.join();
  CHECK(sizes == std::vector<std::size_t>{3, 3});
}

TEST_CASE("with its cluster every process of it is gone", "[runtime][session]") {
  std::vector<int> pids;
  Ref<int> left;
  {
    auto cluster = init({.cpus = 2});
    pids.push_back(task<process_id>().get(kGuard));
    auto counter = spawn<Counter>(0);
    pids.push_back(counter.call<&Counter::pid>().get(kGuard));
    left = task<sleeps>(600'000);
  }
  for (int pid : pids) CHECK_FALSE(runs(pid));
  CHECK_THROWS_WITH(left.get(kGuard), Catch::Contains("keep it for as long as refs and actors"));
  CHECK_THROWS_AS(task<twice>(1), Refused);
}

TEST_CASE("a private cluster that is killed is no head to start again",
          "[runtime][session][failure]") {
  const auto cluster = init({.cpus = 1});
  auto sleeper = task<sleeps>(600'000);
  const auto self = std::to_string(getpid());
  std::ifstream children("/proc/" + self + "/task/" + self + "/children");
  int killed = 0;
  for (pid_t child = 0; children >> child; ++killed) ::kill(child, SIGKILL);
  REQUIRE(killed > 0);
  std::string why;
  try {
    sleeper.get(kGuard);
  } catch (const Disconnected& gone) {
    why = gone.what();
  }
  CHECK_THAT(why, Catch::Contains("the cluster is gone: ") &&
                      Catch::Contains("private cluster has ended") &&
                      Catch::Contains("start this program again") && !Catch::Contains("its head"));
}
