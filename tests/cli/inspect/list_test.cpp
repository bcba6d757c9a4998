#include <algorithm>
#include <csignal>
#include <set>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "eventually.hpp"
#include "stopped.hpp"
#include "support/cluster.hpp"

using namespace troupe::test;
using nlohmann::json;

namespace {

std::vector<std::string> list_command(const std::string& what,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> arguments{TROUPE_PROGRAM, "list", what};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Finished list(const TestCluster& cluster, const std::string& what,
              const std::vector<std::string>& more = {}) {
  return run(list_command(what, more), cluster.environment(), kGuard, Streams::Apart);
}

json rows(const TestCluster& cluster, const std::string& what, std::vector<std::string> more = {}) {
  more.emplace_back("--json");
  return json::parse(printed_by(list_command(what, more), cluster.environment()));
}

std::string state_of(const json& row) { return row.at("state").get<std::string>(); }

std::ptrdiff_t with_state(const json& rows, const std::string& state) {
  return std::ranges::count_if(rows, [&](const json& row) { return state_of(row) == state; });
}

/// Two CPUs, which two actors hold; a task, an actor and a gang wait for them.
struct Busy {
  TestCluster cluster{1, 2};
  Child first = cluster.driver("hold");
  Child second = started("hold", first);
  Child task = started("task", second);
  Child actor = cluster.driver("hold");
  Child gang = cluster.driver("hold_gang");

  /// Once the one before it holds its actor.
  Child started(const std::string& what, Child& before) {
    before.wait_for_output("holding");
    return cluster.driver(what);
  }
  Busy() {
    REQUIRE(eventually([this] { return json::parse(cluster.status()).at("pending").size() == 3; }));
  }
  ~Busy() {
    for (auto* child : {&gang, &actor, &task, &second, &first}) child->signal(SIGKILL);
  }
};

}  // namespace

TEST_CASE("each list has what runs and what waits, with its reason", "[cli][cluster][list]") {
  const Busy busy;
  const auto& cluster = busy.cluster;
  const auto tasks = rows(cluster, "tasks");
  REQUIRE(tasks.size() == 1);
  CHECK(tasks[0]["state"] == "pending");
  CHECK(tasks[0]["what"] == "lease of cpu 1");
  CHECK(tasks[0]["job_name"] == "test_driver");
  CHECK(tasks[0]["node"].is_null());
  CHECK_FALSE(tasks[0]["reason"].get<std::string>().empty());

  const auto actors = rows(cluster, "actors");
  REQUIRE(actors.size() == 3);
  CHECK(rows(cluster, "actors", {"--filter", "state=placed"}).size() == 2);
  const auto waiting = rows(cluster, "actors", {"--filter", "state=pending"});
  REQUIRE(waiting.size() == 1);
  CHECK_FALSE(waiting[0]["reason"].get<std::string>().empty());
  CHECK(waiting[0]["waits"].get<double>() >= 0);

  const auto gangs = rows(cluster, "gangs");
  REQUIRE(gangs.size() == 1);
  CHECK(gangs[0]["size"] == 2);
  CHECK_FALSE(gangs[0]["reason"].get<std::string>().empty());

  CHECK(rows(cluster, "jobs").size() == 5);
  const auto pending = rows(cluster, "jobs", {"--filter", "pending=1"});
  REQUIRE(pending.size() == 3);
  CHECK_FALSE(pending[0]["reason"].get<std::string>().empty());
  const auto node = rows(cluster, "nodes").at(0);
  CHECK(node.at("name") == "w1");
  CHECK(node.at("reserved").at("cpu") == 2);
}

TEST_CASE("status has one line for requests of a job that wait for the same reason",
          "[cli][cluster][list]") {
  TestCluster cluster(1, 1);
  auto driver = cluster.driver("use_all");  // four actors of one CPU each
  // The turn of one of the three is next, and room is kept for it.
  CHECK(eventually([&] {
    const auto shown = run({TROUPE_PROGRAM, "status"}, cluster.environment()).output;
    return shown.find(" s (the longest of 2 that are alike): actor of cpu 1 [") !=
               std::string::npos &&
           shown.find("its turn is next") != std::string::npos;
  }));
  driver.signal(SIGKILL);
}

TEST_CASE("a list is a table whose columns are aligned and whose lines are whole",
          "[cli][cluster][list]") {
  const Busy busy;
  const auto shown = list(busy.cluster, "actors").output;
  INFO(shown);
  const auto title_end = shown.find('\n');
  const auto column = shown.substr(0, title_end).find("STATE");
  REQUIRE(column != std::string::npos);
  std::set<std::string> states;
  for (auto at = title_end + 1; at < shown.size(); at = shown.find('\n', at) + 1)
    states.insert(shown.substr(at + column, 6));
  CHECK(states == std::set<std::string>{"placed", "pendin"});
  CHECK_THAT(shown, Catch::Contains("REASON\n"));
  // The reason changes while it waits: once its turn is next, room is kept free for it.
  CHECK(eventually([&] {
    const auto waiting = rows(busy.cluster, "actors", {"--filter", "state=pending"});
    const auto line = waiting.at(0).at("reason").get<std::string>() + "\n";
    return list(busy.cluster, "actors").output.find(line) != std::string::npos;
  }));
}

TEST_CASE("filters of one key are alternatives, those of several keys all hold",
          "[cli][cluster][list]") {
  const Busy busy;
  const auto count = [&](const std::vector<std::string>& filters) {
    return rows(busy.cluster, "actors", filters).size();
  };
  CHECK(count({"--filter", "state=pending", "--filter", "state=placed"}) == 3);
  CHECK(count({"--filter", "state=placed", "--filter", "node=1"}) == 2);
  CHECK(count({"--filter", "state=pending", "--filter", "node=1"}) == 0);
  CHECK(count({"--filter", "node=-"}) == 1);
}

TEST_CASE("a list says that there is nothing, and what a filter has left out",
          "[cli][cluster][list]") {
  TestCluster cluster(1);
  CHECK(list(cluster, "gangs").output == "nothing: there are no gangs\n");
  CHECK(
      list(cluster, "nodes", {"--filter", "state=lost"}).output ==
      "nothing: the filter leaves out all the nodes that there are (1), which have state=ready\n");
  CHECK(list(cluster, "nodes", {"--filter", "state=lost"}).exit_code == 0);
  CHECK(rows(cluster, "gangs") == json::array());
}

TEST_CASE("a filter that means nothing is refused with the keys that there are",
          "[cli][list][refusal]") {
  const auto refused = [](const std::string& what, const std::string& filter) {
    const auto done = run({TROUPE_PROGRAM, "list", what, "--filter", filter});
    CHECK(done.exit_code == 2);
    return done.output;
  };
  CHECK_THAT(refused("gangs", "colour=red"),
             Catch::Contains("gangs cannot be filtered by 'colour': there are the keys gang, job, "
                             "state and size"));
  CHECK_THAT(refused("gangs", "state"),
             Catch::Contains("not of the form KEY=VALUE, such as gang=1"));
  const auto unknown = run({TROUPE_PROGRAM, "list", "things"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.output, Catch::Contains("nodes,actors,tasks,gangs,objects,stores,jobs"));
  const auto none = run({TROUPE_PROGRAM, "list"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.output, Catch::StartsWith(
                              "troupe list: WHAT is required: what is listed, a line for each, one "
                              "of {nodes,actors,tasks,gangs,objects,stores,jobs}\n"));
}

TEST_CASE("a kind is listed by its singular too, and a misspelt word is told the nearest",
          "[cli][cluster][list][refusal]") {
  TestCluster cluster(1);
  REQUIRE(rows(cluster, "node").size() == 1);
  CHECK(rows(cluster, "node")[0].at("name") == "w1");
  CHECK(list(cluster, "gang").output == list(cluster, "gangs").output);
  const auto refused = [&](const std::string& what, const std::vector<std::string>& more = {}) {
    const auto done = list(cluster, what, more);
    CHECK(done.exit_code == 2);
    return done.errors;
  };
  CHECK_THAT(refused("actr"), Catch::Contains("there is no list of 'actr', only of ") &&
                                  Catch::Contains("; did you mean 'actors'?\n"));
  CHECK_THAT(refused("things"), !Catch::Contains("did you mean"));
  CHECK_THAT(refused("node", {"--filter", "stat=ready"}),
             Catch::Contains("nodes cannot be filtered by 'stat'") &&
                 Catch::Contains("; did you mean 'state'?\n"));
}

TEST_CASE("tasks are listed with what runs in each process, and whether it waits for another task",
          "[cli][cluster][list]") {
  TestCluster cluster(1);
  auto holder = cluster.driver("holds_tasks");
  json tasks;
  CHECK(eventually([&] {
    tasks = rows(cluster, "tasks");
    return tasks.size() == 2 && with_state(tasks, "blocked") == 1 &&
           with_state(tasks, "running") == 1;
  }));
  INFO(tasks.dump(2));
  for (const auto& task : tasks) {
    const auto name = task.at("task").get<std::string>();
    CHECK_THAT(name, Catch::EndsWith(state_of(task) == "running" ? "lasts" : "waits_for_lasting"));
    CHECK(task.at("runs").get<double>() >= 0);
    CHECK(task.at("node") == 1);
    CHECK(task.at("pid").get<pid_t>() > 0);
    CHECK(rows(cluster, "tasks", {"--filter", "task=" + name}).size() == 1);
  }
  CHECK_THAT(list(cluster, "tasks").output, Catch::StartsWith("TASK "));
  holder.signal(SIGKILL);
  CHECK(eventually([&] { return rows(cluster, "tasks").empty(); }));
}

TEST_CASE("stores are listed by node, with what each holds in all", "[cli][cluster][list]") {
  TestCluster cluster(1);
  CHECK(rows(cluster, "stores")[0]["state"] == "never used");
  CHECK(cluster.run_driver("stored").exit_code == 0);
  CHECK(eventually([&] { return rows(cluster, "stores")[0]["state"] == "used"; }));
  CHECK(rows(cluster, "stores")[0]["capacity"].get<std::uint64_t>() > 0);
  CHECK_THAT(list(cluster, "stores").output, Catch::Contains("`troupe list objects` has"));
}

TEST_CASE("single objects are listed with their sizes, where they lie, and who keeps them",
          "[cli][cluster][list]") {
  TestCluster cluster(1);
  CHECK(list(cluster, "objects").output == "nothing: there are no objects\n");
  auto holder = cluster.driver("holds_values");
  holder.wait_for_output("holding");
  const auto objects = rows(cluster, "objects");
  INFO(objects.dump(2));
  REQUIRE(objects.size() == 2);
  CHECK(objects[0]["bytes"].get<std::uint64_t>() >= 400'000);
  CHECK(objects[1]["bytes"].get<std::uint64_t>() >= 300'000);
  for (const auto& object : objects) {
    CHECK(object["name"] == "w1");
    CHECK(object["copy"] == "original");
    CHECK(object["job_name"] == "test_driver");
    CHECK(object["owner_pid"] == holder.pid());
    CHECK((object["state"] == "in memory" || object["state"] == "pinned"));
    CHECK(object["pinned_by"].empty() == (object["state"] == "in memory"));
  }
  CHECK(rows(cluster, "objects", {"--filter", "owner_pid=-"}).empty());
  CHECK(rows(cluster, "objects", {"--filter", "name=w1"}).size() == 2);
  CHECK_THAT(list(cluster, "objects").output, Catch::StartsWith("OBJECT") &&
                                                  Catch::Contains("KiB") &&
                                                  Catch::Contains("test_driver"));
  holder.signal(SIGKILL);
  CHECK(eventually([&] { return rows(cluster, "objects").empty(); }));
}

TEST_CASE("a list that is cut says how many rows there are", "[cli][cluster][list]") {
  TestCluster cluster(2);
  auto holder = cluster.driver("holds_values");
  holder.wait_for_output("holding");
  const auto check_cut = [&](const std::string& what, const std::vector<std::string>& more,
                             const std::string& in_all) {
    const auto shown = list(cluster, what, more);
    CHECK(shown.exit_code == 0);
    CHECK(json::parse(shown.output).size() == 1);
    CHECK(shown.errors == "troupe: 1 of " + in_all + " " + what +
                              " are shown, the first ones: --limit shows more, and --filter "
                              "others\n");
  };
  const auto in_all = std::to_string(rows(cluster, "objects").size());
  check_cut("objects", {"--limit", "1", "--json"}, in_all);
  check_cut("objects", {"--limit", "1", "--json", "--filter", "job_name=test_driver"}, in_all);
  check_cut("nodes", {"--limit", "1", "--json"}, "2");
  CHECK(list(cluster, "nodes", {"--limit", "2"}).errors.empty());
  CHECK(list(cluster, "nodes", {"--limit", "0"}).exit_code == 2);
  holder.signal(SIGKILL);
}

TEST_CASE("a node that stands still is named, and the objects of the others are listed",
          "[cli][cluster][list]") {
  TestCluster cluster(2);
  auto holder = cluster.driver("holds_values");
  holder.wait_for_output("holding");
  const auto ids = [](const json& objects) {
    std::vector<std::string> ids;
    for (const auto& object : objects) ids.push_back(object.at("object"));
    return ids;
  };
  const auto before = rows(cluster, "objects", {"--filter", "name=w1"});
  const auto shown = [&] {
    const Stopped silent(cluster.worker(1).agent());
    return list(cluster, "objects", {"--json"});
  }();
  CHECK(shown.exit_code == 1);
  CHECK_THAT(shown.errors,
             Catch::Contains("troupe: node w2 has not answered: its objects are missing\n"));
  CHECK(ids(json::parse(shown.output)) == ids(before));
  holder.signal(SIGKILL);
}

TEST_CASE("what runs on a node that stands still is not known", "[cli][cluster][list]") {
  TestCluster cluster(1);
  auto holder = cluster.driver("holds_tasks");
  REQUIRE(eventually([&] { return with_state(rows(cluster, "tasks"), "blocked") == 1; }));
  const auto shown = [&] {
    const Stopped silent(cluster.worker(0).agent());
    return list(cluster, "tasks", {"--json"});
  }();
  CHECK(shown.exit_code == 1);
  CHECK_THAT(
      shown.errors,
      Catch::Contains("troupe: node w1 has not answered: which tasks run there is not known\n"));
  CHECK(with_state(json::parse(shown.output), "unknown") == 2);
  holder.signal(SIGKILL);
}

TEST_CASE("a list that a filter limits to one node asks no other one, which may stand still",
          "[cli][cluster][list]") {
  TestCluster cluster(2);
  CHECK(list(cluster, "objects", {"--filter", "node=2"}).output ==
        "nothing: there are no objects on node 2\n");
  auto holder = cluster.driver("hold_first");  // an actor on node 1
  holder.wait_for_output("holding");
  const Stopped silent(cluster.worker(1).agent());
  for (const auto& [what, filter] :
       {std::pair{"objects", "node=1"}, {"objects", "name=w1"}, {"tasks", "node=1"}}) {
    const auto shown = list(cluster, what, {"--filter", filter, "--json"});
    INFO(what << ' ' << filter);
    CHECK(shown.exit_code == 0);
    CHECK_THAT(shown.errors, !Catch::Contains("has not answered"));
  }
  holder.signal(SIGKILL);
}
