// Actors that outlive the programs that made them, and are called by others.
#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "guard.hpp"
#include "stopped.hpp"
#include "support/cluster.hpp"
#include "support/unread_bytes.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

std::string run_program(const std::string& program, const TestCluster& cluster,
                        const std::string& what) {
  return printed_by({program, what}, cluster.environment());
}

std::string run_one(const TestCluster& cluster, const std::string& what) {
  return run_program(TROUPE_TEST_DETACHED_DRIVER, cluster, what);
}

std::string run_other(const TestCluster& cluster, const std::string& what) {
  return run_program(TROUPE_TEST_OTHER_DETACHED_DRIVER, cluster, what);
}

/// What so many programs print that are started at the same time.
std::vector<std::string> run_together(const TestCluster& cluster, const std::string& what,
                                      int programs) {
  std::vector<Child> children;
  children.reserve(static_cast<std::size_t>(programs));
  for (int i = 0; i < programs; ++i)
    children.emplace_back(std::vector<std::string>{TROUPE_TEST_DETACHED_DRIVER, what},
                          cluster.environment(), Streams::Apart);
  std::vector<std::string> printed;
  for (auto& child : children) {
    const auto status = child.wait(kGuard);
    INFO(child.output() << child.errors());
    REQUIRE(status);
    printed.push_back(child.output());
  }
  return printed;
}

nlohmann::json actors_of(const TestCluster& cluster) {
  return nlohmann::json::parse(cluster.status()).at("actors");
}

}  // namespace

TEST_CASE("a detached actor outlives its program and is called by others", "[cli][cluster]") {
  TestCluster cluster(2);
  CHECK(run_one(cluster, "make") == "add: 101\n");
  REQUIRE(actors_of(cluster).size() == 1);
  for (const auto& program : {TROUPE_TEST_DETACHED_DRIVER, TROUPE_TEST_OTHER_DETACHED_DRIVER}) {
    INFO(program);
    const auto used = run_program(program, cluster, "use");
    INFO(used);
    CHECK_THAT(used, Contains("large result: 300000\n") && Contains("order: kept\n"));
    CHECK_THAT(used, Contains("array: 300000 of 0.500000\n"));
    CHECK_THAT(used, Contains("nested ref: Refused: ") && Contains("ref result: Refused: "));
    CHECK_THAT(used, Contains("refs stay within their program"));
    CHECK_THAT(used, !Contains("failed: "));
  }
  // 101, then twice 1 + 10 + 300,000 + 1,000.
  CHECK(run_one(cluster, "hand on") == "a task adds: 602124\n");
  run_other(cluster, "kill");
  CHECK(cluster.all_is_free());
  CHECK(actors_of(cluster).empty());
}

TEST_CASE("calls of another job that fail as they leave mix up no others", "[cli][cluster]") {
  TestCluster cluster(2);
  run_one(cluster, "make at 0");
  CHECK(run_other(cluster, "entangle") == "entangle: kept\n");
  for (int i = 0; i < 5; ++i) run_other(cluster, "leave early");
  run_one(cluster, "kill");
  CHECK(cluster.all_is_free());
}

TEST_CASE("a detached actor stays when the program that made it is killed", "[cli][cluster]") {
  TestCluster cluster(1);
  {
    auto maker = Child({TROUPE_TEST_DETACHED_DRIVER, "make and wait"}, cluster.environment());
    maker.wait_for_output("made");
    maker.signal(SIGKILL);
  }
  CHECK_THAT(run_other(cluster, "use"), Contains("add: 1\n"));
  run_one(cluster, "kill");
  CHECK(cluster.all_is_free());
}

TEST_CASE("programs that make the same detached actor at once share one", "[cli][cluster]") {
  TestCluster cluster(2);
  constexpr int kPrograms = 8;
  const auto printed = run_together(cluster, "find or make", kPrograms);
  const std::set<std::string> sums(printed.begin(), printed.end());
  std::set<std::string> expected;
  for (int i = 1; i <= kPrograms; ++i) expected.insert("add: " + std::to_string(i) + "\n");
  CHECK(sums == expected);
  run_one(cluster, "kill");
  CHECK(cluster.all_is_free());
  // The jobs of those that found the name taken have had no actor that could end.
  const std::string ended = "' has ended";
  cluster.head().wait_for_output(ended);
  const auto& log = cluster.head().output();
  CHECK(log.find(ended) == log.rfind(ended));
}

TEST_CASE("who waits for a constructor is told at once that it has failed", "[cli][cluster]") {
  TestCluster cluster(1);
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& printed : run_together(cluster, "fail slowly", 8))
    CHECK_THAT(printed, Contains("slow: failed: ") && Contains("to fail"));
  // Each waits for those before it, for 0.2 s, and not in steps of 10 s, which would be 70.
  CHECK(std::chrono::steady_clock::now() - begin < kGuard);
  CHECK(cluster.all_is_free());
}

TEST_CASE("who waits for a constructor makes the actor where its creator is killed",
          "[cli][cluster]") {
  TestCluster cluster(1);
  auto creator = Child({TROUPE_TEST_DETACHED_DRIVER, "construct for long"}, cluster.environment());
  REQUIRE(eventually([&] { return actors_of(cluster).size() == 1; }));
  auto next = Child({TROUPE_TEST_DETACHED_DRIVER, "construct at once"}, cluster.environment());
  CHECK(eventually([&] {
    const auto status = nlohmann::json::parse(cluster.status());
    return status.at("tables").value("asks that wait for a name", 0) == 1;
  }));
  creator.signal(SIGKILL);
  next.wait_for_output("slow: 1\n", kGuard);
  CHECK(next.wait());
  CHECK(cluster.all_is_free());
}

TEST_CASE("a program ends once the detached actors are made that it did not wait for",
          "[cli][cluster]") {
  TestCluster cluster(1);
  const auto made = run({TROUPE_TEST_DETACHED_DRIVER, "make unseen"}, cluster.environment());
  CHECK(made.exit_code == 0);
  CHECK_THAT(made.output, !Contains("was not made"));
  CHECK(actors_of(cluster).size() == 1);
  const auto again = run({TROUPE_TEST_DETACHED_DRIVER, "make unseen"}, cluster.environment());
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.output, Contains("detached actor 'tests/slow' was not made: the name "
                                    "'tests/slow' is taken"));
  run_one(cluster, "kill slow");
  CHECK(cluster.all_is_free());
}

TEST_CASE("an actor's name has one namespace at most, and is told where it has not",
          "[cli][cluster]") {
  TestCluster cluster(1);
  const auto told = run_one(cluster, "misname");
  INFO(told);
  for (const std::string name : {"/", "a/", "/a", "a/b/c", "a//b"}) {
    const auto why = "Options::name '" + name + "': ";
    CHECK_THAT(told, Contains("made " + name + ": failed: " + why));
    CHECK_THAT(told, Contains("plain " + name + ": failed: " + why));
    CHECK_THAT(told, Contains("find " + name + ": Refused: the actor's name '" + name + "': "));
  }
  CHECK_THAT(told, Contains("it has more than one '/'; give NAME or NAMESPACE/NAME, as"));
  CHECK(actors_of(cluster).empty());
}

TEST_CASE("a detached actor's job has no pid in the status", "[cli][cluster]") {
  TestCluster cluster(1);
  run_one(cluster, "make");
  const auto shown = run({TROUPE_PROGRAM, "status"}, cluster.environment()).output;
  CHECK_THAT(shown, Contains(": tests/ledger, 1 process\n"));
  run_one(cluster, "kill");
}

TEST_CASE("the head's log tells programs that leave from those that are killed", "[cli][cluster]") {
  TestCluster cluster(1);
  run_one(cluster, "make");
  cluster.head().wait_for_output("job 1 ended\n");
  {
    auto maker = Child({TROUPE_TEST_DETACHED_DRIVER, "hold a plain name"}, cluster.environment());
    maker.wait_for_output("holding");
    maker.signal(SIGKILL);
  }
  cluster.head().wait_for_output("job 3 ended: the peer closed the connection\n");
  run_one(cluster, "kill");
}

TEST_CASE("a detached actor that cannot be made leaves nothing behind", "[cli][cluster]") {
  TestCluster cluster(1);
  run_one(cluster, "make");
  const auto failed = run_one(cluster, "fail to make");
  INFO(failed);
  CHECK_THAT(failed, Contains("constructor: failed: ") && Contains("begins at 0 or above"));
  CHECK_THAT(failed,
             Contains("taken: Refused: the name 'tests/ledger' is taken by actor") &&
                 Contains(", which is detached and outlives its program: find() returns it"));
  CHECK_THAT(failed,
             Contains("no namespace: failed: Options::detached") && Contains("\"shared/counter\""));
  CHECK_THAT(failed, Contains("argument: failed: ") && Contains("no number"));
  CHECK_THAT(failed, Contains("cancelled: failed: ") && Contains("was cancelled"));
  CHECK_THAT(failed, Contains("find: TimedOut: "));
  run_one(cluster, "kill");
  CHECK(cluster.all_is_free());
  CHECK(nlohmann::json::parse(cluster.status()).at("jobs").empty());
}

TEST_CASE("a plain name is its program's own, and an attached actor ends with its program",
          "[cli][cluster]") {
  TestCluster cluster(1, 8);
  auto holder = Child({TROUPE_TEST_DETACHED_DRIVER, "hold a plain name"}, cluster.environment());
  holder.wait_for_output("holding");
  const auto looked = run_other(cluster, "look for them");
  INFO(looked);
  CHECK_THAT(looked, Contains("plain: TimedOut: ") && Contains("in this program"));
  CHECK_THAT(looked, Contains("attached: Refused: ") && Contains("Options::detached"));
  CHECK_THAT(looked, Contains("own: 2\n"));
}

TEST_CASE("programs whose types differ are told where", "[cli][cluster]") {
  TestCluster cluster(1);
  run_one(cluster, "make");
  const auto mistaken = run_other(cluster, "mistake it");
  INFO(mistaken);
  CHECK_THAT(mistaken,
             Contains("type: Refused: actor 'tests/ledger' has the type Ledger, not OtherType"));
  CHECK_THAT(mistaken,
             Contains("method: failed: ") &&
                 Contains("has no function 'Ledger::subtract' that the runtime knows of"));
  CHECK_THAT(mistaken, Contains("signature: failed: ") &&
                           Contains("has a 'Ledger::scale' with another signature, int (int): ") &&
                           Contains("; the caller's 'Ledger::scale' is int (long)\n"));
  run_one(cluster, "kill");
}

TEST_CASE("whoever has a handle of a detached actor is told of its death", "[cli][cluster]") {
  TestCluster cluster(1);
  run_one(cluster, "make");
  const auto seen = run_other(cluster, "see it die");
  INFO(seen);
  CHECK_THAT(seen, Contains("die: failed: ") && Contains("killed by signal 9"));
  CHECK_THAT(seen, Contains("after: failed: ") && Contains("find: TimedOut: "));
  CHECK(cluster.all_is_free());
  // Who comes later is told too.
  for (const auto& told : {seen, run_one(cluster, "find")}) {
    INFO(told);
    CHECK_THAT(told, Contains("within 500 ms: there is no actor 'tests/ledger' that can be called "
                              "now; the detached actor of that name ended at 20") &&
                         Contains(" s ago: ") && Contains("killed by signal 9") &&
                         Contains(". No program has made it again since\n"));
  }
  // The name is free again.
  run_one(cluster, "make");
  run_one(cluster, "kill");
}

namespace {

/// What a program prints that asks the head, which stands still, right after the node of the detached
/// actor was killed: the head hears of both in one turn of its loop.
std::string asked_with_the_loss(const std::string& what) {
  TestCluster cluster(1);
  run_one(cluster, "make");
  const auto go = cluster.folder() + "/go";
  auto environment = cluster.environment();
  environment.push_back("TROUPE_TEST_GO=" + go);
  Child asker({TROUPE_TEST_DETACHED_DRIVER, what}, environment, Streams::Apart);
  asker.wait_for_output("waiting\n");
  {
    const Stopped head(cluster.head().pid());
    cluster.worker(0).signal(SIGKILL);
    CHECK(cluster.worker(0).wait());
    const auto port = std::stoi(cluster.address().substr(cluster.address().rfind(':') + 1));
    // A heartbeat of each second lies there too.
    const auto before = unread_bytes(asker.pid(), port);
    std::ofstream(go) << "\n";
    asker.wait_for_output("asking\n");
    CHECK(eventually([&] { return unread_bytes(asker.pid(), port) > before; }));
  }
  CHECK(asker.wait());
  const auto printed = asker.output();
  return printed.substr(printed.find("asking\n") + std::string("asking\n").size());
}

}  // namespace

TEST_CASE("a detached actor that is lost with its node is in the status at any time",
          "[cli][cluster]") {
  const auto status = nlohmann::json::parse(asked_with_the_loss("report when told"));
  INFO(status.dump());
  CHECK(status.at("actors").size() + status.at("lost_actors").size() == 1);
}

TEST_CASE("who looks for a detached actor as its node is lost is told of the loss",
          "[cli][cluster]") {
  const auto told = asked_with_the_loss("look when told");
  INFO(told);
  const bool is_there = told == "look: 0\n";
  CHECK((is_there || Contains("the detached actor of that name ended at 20").match(told)));
}

TEST_CASE("who looks for a detached actor that was killed by its handle is told so",
          "[cli][cluster]") {
  TestCluster cluster(1);
  CHECK_THAT(run_one(cluster, "find"), !Contains("ended at"));
  run_one(cluster, "make");
  run_one(cluster, "kill");
  REQUIRE(eventually([&] { return actors_of(cluster).empty(); }));
  const auto told = run_one(cluster, "find");
  INFO(told);
  CHECK_THAT(told,
             Contains("find: TimedOut: no actor 'tests/ledger' could be called within 500 ms: "
                      "there is no actor 'tests/ledger' that can be called now; the detached "
                      "actor of that name ended at 20"));
  CHECK_THAT(told, Contains("look: TimedOut: there is no actor 'tests/ledger' that can be called "
                            "now; the detached actor of that name ended at 20"));
  CHECK_THAT(told, Contains("it was killed through a handle. No program has made it again since"));
  // Nobody lost it.
  CHECK(nlohmann::json::parse(cluster.status()).at("lost_actors").empty());
  run_one(cluster, "make");
  CHECK(run_one(cluster, "find it") == "find: 0\n");
  run_one(cluster, "kill");
}

TEST_CASE("a private cluster has detached actors of its program alone, which is said",
          "[cli][cluster]") {
  const auto made = run({TROUPE_TEST_DETACHED_DRIVER, "make two"}, {"TROUPE_ADDRESS="});
  INFO(made.output);
  CHECK(made.exit_code == 0);
  const std::string warning =
      "a detached actor of this program ends with the program, because its cluster is private: for "
      "the actor to stay, start `troupe head` and give the program --address HOST:PORT";
  const auto at = made.output.find(warning);
  REQUIRE(at != std::string::npos);
  CHECK(made.output.find(warning, at + 1) == std::string::npos);

  const auto looked = run({TROUPE_TEST_DETACHED_DRIVER, "find"}, {"TROUPE_ADDRESS="});
  CHECK_THAT(looked.output, Contains("This program's cluster is private, so that it finds no actor "
                                     "of another program: give it --address"));

  TestCluster cluster(1);
  const auto there = run({TROUPE_TEST_DETACHED_DRIVER, "make two"}, cluster.environment());
  CHECK(there.exit_code == 0);
  CHECK_THAT(there.output, !Contains("is private"));
}

TEST_CASE("troupe stop says which programs and detached actors end with the cluster",
          "[cli][cluster][stop]") {
  TestCluster cluster(1);
  run_one(cluster, "make two");
  auto driver = cluster.driver("hold");
  driver.wait_for_output("holding");
  const auto stopped = run({TROUPE_PROGRAM, "stop"}, cluster.environment());
  INFO(stopped.output);
  CHECK(stopped.exit_code == 0);
  CHECK_THAT(stopped.output, Contains(" (1 node)\n  ended 1 program: test_driver\n"
                                      "  ended 2 detached actors: tests/ledger and tests/other\n"));
  REQUIRE(driver.wait());
  REQUIRE(cluster.worker(0).wait());
  REQUIRE(cluster.head().wait());
}
