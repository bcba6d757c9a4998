// Which checkpoints are deleted on nodes that do not share the run's folder.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/experiment.hpp>
#include <troupe/tune/schedulers/asha.hpp>

#include "run/checkpoints/checkpoint_keeper.hpp"
#include "run/checkpoints/node_removals.hpp"
#include "run/checkpoints/tidying.hpp"
#include "run/drive.hpp"
#include "run/fake_launcher.hpp"
#include "support/temporary_folder.hpp"

namespace node_removals_test {

using namespace troupe;
using namespace troupe::tune;
using tune::detail::NodeRemoval;
using tune::detail::NodeRemover;
using Strings = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

/// Keeps what nodes are told.
struct ToldNodes final : NodeRemover {
  std::map<std::uint32_t, Node> states;  // Free where there is none
  std::map<std::uint32_t, Strings> gone;
  std::map<std::uint32_t, Strings> staying;  // of the last time
  std::size_t times = 0;

  Node look_at(std::uint32_t node) override {
    const auto at = states.find(node);
    return at == states.end() ? Node::Free : at->second;
  }
  void remove(std::uint32_t node, const NodeRemoval& removal) override {
    CHECK(removal.run == "/run");
    CHECK_FALSE(removal.gone.empty());
    gone[node].insert(gone[node].end(), removal.gone.begin(), removal.gone.end());
    staying[node] = removal.staying;
    ++times;
  }
  bool wait_for_one(std::chrono::steady_clock::time_point) override { return false; }
};

/// A node that takes its time with a removal: so many milliseconds from the first wait on.
struct SlowNode final : NodeRemover {
  explicit SlowNode(std::chrono::milliseconds takes) : takes_{takes} {}
  Node look_at(std::uint32_t) override { return Node::Free; }
  void remove(std::uint32_t, const NodeRemoval&) override {}
  bool wait_for_one(std::chrono::steady_clock::time_point deadline) override {
    const auto now = std::chrono::steady_clock::now();
    if (!done_at_) done_at_ = now + takes_;
    if (now >= deadline || now >= *done_at_) return false;
    std::this_thread::sleep_until(std::min(deadline, *done_at_));
    return true;
  }

 private:
  std::chrono::milliseconds takes_;
  std::optional<std::chrono::steady_clock::time_point> done_at_;
};

std::string on_node(int node, const std::string& name) {
  return "node " + std::to_string(node) + ":/run/trials/0/" + name;
}

Strings in_trial(const Strings& names) {
  Strings paths;
  for (const auto& name : names) paths.push_back("/run/trials/0/" + name);
  return paths;
}

Experiment one_trial() {
  ExperimentOptions options{.objective = {"accuracy", Max}, .max_failures = 1};
  return {options, std::make_unique<RandomSearcher>(SearchSpace{{"lr", uniform(0, 1)}}, 1, 1),
          fifo()(options.objective, 1)};
}

/// A run of one trial in virtual time.
struct Run {
  explicit Run(std::size_t keep = 1) : keeper("/run", {"accuracy", Max}, keep) {}

  /// `looks`: whether nodes are told as the run goes, as after each step of a search.
  void drive(FakeLauncher::Script script, bool looks = true) {
    experiment.observe([&](const Event& event, const Trial* trial) { keeper.see(event, trial); });
    FakeLauncher cluster(std::move(script));
    const auto tick = [&](Seconds) {
      if (looks) keeper.tidy_nodes(experiment, nodes);
    };
    tune::drive(experiment, cluster, {}, {.tick = tick});
  }
  void tell() { keeper.tidy_nodes(experiment, nodes); }

  Experiment experiment = one_trial();
  tune::detail::CheckpointKeeper keeper;
  ToldNodes nodes;
};

/// Accuracies 3 1 5 2 4 6 0 with checkpoints "1" to "7" on node 2.
FakeLauncher::Script up_and_down() {
  FakeLauncher::Script script{.reports = 7};
  script.value = [](const Launch&, std::int64_t t) {
    return std::vector<double>{3, 1, 5, 2, 4, 6, 0}.at(static_cast<std::size_t>(t) - 1);
  };
  script.checkpoint = [](const Launch&, std::int64_t t) { return on_node(2, std::to_string(t)); };
  return script;
}

Strings sorted(Strings paths) {
  std::ranges::sort(paths);
  return paths;
}

fs::path written(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "weights") << "of this checkpoint\n";
  return folder;
}

}  // namespace

TEST_CASE("a node that does not share the folder is told what goes there, and never what stays",
          "[tune][checkpoint]") {
  Run run;
  run.drive(up_and_down());
  run.tell();
  CHECK(sorted(run.nodes.gone[2]) == in_trial({"1", "2", "3", "4", "5"}));
  CHECK(run.nodes.gone.size() == 1);
  CHECK(run.nodes.times >= 3);
}

TEST_CASE("a node that is busy is told later of all at once, with what stays on it",
          "[tune][checkpoint]") {
  Run run;
  run.nodes.states[2] = NodeRemover::Node::Busy;
  run.drive(up_and_down());
  CHECK(run.nodes.times == 0);
  run.nodes.states[2] = NodeRemover::Node::Free;
  run.tell();
  CHECK(run.nodes.times == 1);
  CHECK(sorted(run.nodes.gone[2]) == in_trial({"1", "2", "3", "4", "5"}));
  CHECK(std::set(run.nodes.staying[2].begin(), run.nodes.staying[2].end()) ==
        std::set<std::string>{"/run/trials/0/6", "/run/trials/0/7"});
  run.tell();
  CHECK(run.nodes.times == 1);
}

TEST_CASE("what was to go on a node that has left the cluster is forgotten", "[tune][checkpoint]") {
  Run run;
  run.nodes.states[2] = NodeRemover::Node::Gone;
  run.drive(up_and_down());
  run.nodes.states.clear();
  run.tell();
  CHECK(run.nodes.times == 0);
}

TEST_CASE("nothing goes on nodes where all checkpoints are kept, or once the run was interrupted",
          "[tune][checkpoint]") {
  const auto [keep, interrupted] = GENERATE(std::pair(0, false), std::pair(1, true));
  Run run(static_cast<std::size_t>(keep));
  run.nodes.states[2] = NodeRemover::Node::Busy;
  run.drive(up_and_down());
  run.nodes.states.clear();
  if (interrupted) run.experiment.close("interrupted", Seconds(100));
  run.keeper.see_spare_copy(keep == 0 ? on_node(3, "received/node-3") : "");
  run.tell();
  CHECK(run.nodes.times == 0);
}

TEST_CASE("what may go on nodes is in a snapshot", "[tune][checkpoint][resume]") {
  Run run;
  run.drive(up_and_down(), false);
  tune::detail::CheckpointKeeper other("/run", {"accuracy", Max}, 1);
  other.load(run.keeper.save());
  CHECK(other.save() == run.keeper.save());
  other.tidy_nodes(run.experiment, run.nodes);
  CHECK(sorted(run.nodes.gone[2]) == in_trial({"1", "2", "3", "4", "5"}));
}

TEST_CASE("the end of a run says that it waits for nodes which delete checkpoints",
          "[tune][checkpoint]") {
  using namespace std::chrono_literals;
  const auto said_of = [](std::chrono::milliseconds takes) {
    tune::detail::Tidying tidying(std::make_unique<SlowNode>(takes));
    tune::detail::CheckpointKeeper keeper("/run", {"accuracy", Max}, 1);
    const auto experiment = one_trial();
    Strings said;
    const auto begin = std::chrono::steady_clock::now();
    tidying.finish(keeper, experiment, [&](const std::string& what) { said.push_back(what); },
                   {20ms, 200ms});
    if (takes > 1h) CHECK(std::chrono::steady_clock::now() - begin >= 200ms);
    return said;
  };
  CHECK(said_of(0ms).empty());
  CHECK(said_of(24h) ==
        Strings{"nodes that do not share the run's folder delete checkpoints there: "
                "the run waits for it for 0.2 s in all at most"});
}

TEST_CASE("a copy goes on the node that was sent it, unless the trial has reported the copy itself",
          "[tune][checkpoint]") {
  Run run;
  auto script = up_and_down();
  const auto copy = on_node(3, "received/attempt-1-node-3");
  script.reports = 1;
  const bool is_reported = GENERATE(false, true);
  if (is_reported) script.checkpoint = [&](const Launch&, std::int64_t) { return copy; };
  run.drive(script);
  run.keeper.see_spare_copy(copy);
  run.tell();
  CHECK(run.nodes.gone[3].size() == (is_reported ? 0 : 1));
}

TEST_CASE("a path that stays on one node goes on no other, as they may share a folder",
          "[tune][checkpoint]") {
  // "a" on node 2, "b" on node 2; it fails, and on node 3 "a" once more, the best, and "c".
  FakeLauncher::Script script{.reports = 4};
  script.failure = [](const Launch& launch, std::int64_t t) {
    return launch.attempt == 1 && t == 3 ? std::optional<std::string>("it fails") : std::nullopt;
  };
  const bool comes_again = GENERATE(true, false);
  script.value = [](const Launch&, std::int64_t t) { return t == 3 ? 9 : t; };
  script.checkpoint = [=](const Launch&, std::int64_t t) {
    const Strings names{"a", "b", comes_again ? "a" : "d", "c"};
    return on_node(t < 3 ? 2 : 3, names.at(static_cast<std::size_t>(t) - 1));
  };
  Run run;
  run.nodes.states[2] = NodeRemover::Node::Busy;
  run.drive(script);
  run.nodes.states.clear();
  run.tell();
  CHECK(sorted(run.nodes.gone[2]) == in_trial(comes_again ? Strings{"b"} : Strings{"a", "b"}));
  CHECK(run.nodes.gone[3].empty());
}

TEST_CASE("what a trial that has gone back may write once more is not deleted before it is over",
          "[tune][checkpoint]") {
  FakeLauncher::Script script{.reports = 8};
  script.value = [](const Launch&, std::int64_t t) { return static_cast<double>(-t); };
  script.failure = [](const Launch& launch, std::int64_t t) {
    return launch.attempt == 1 && t == 6 ? std::optional<std::string>("it fails") : std::nullopt;
  };
  script.checkpoint = [](const Launch&, std::int64_t t) { return on_node(2, std::to_string(t)); };
  // All but the first, its best, are gone by its next attempt.
  script.is_there = [](const std::string& checkpoint) { return checkpoint == on_node(2, "1"); };
  Run run;
  run.nodes.states[2] = NodeRemover::Node::Busy;
  std::size_t told_before_end = 0;
  run.experiment.observe([&](const Event& event, const Trial* trial) {
    run.keeper.see(event, trial);
    // The node is free again once the trial has gone back.
    if (event.kind == Event::Kind::Launched && event.attempt > 1 && event.t == 1)
      run.nodes.states.clear();
    if (event.kind == Event::Kind::Reported && event.t == 7) {
      run.tell();
      told_before_end = run.nodes.gone[2].size();
      CHECK(run.nodes.gone[2] == in_trial({"5", "6"}));
    }
  });
  FakeLauncher cluster(std::move(script));
  drive(run.experiment, cluster, {}, {});
  CHECK(told_before_end == 2);
  run.tell();
  CHECK(sorted(run.nodes.gone[2]) == in_trial({"2", "3", "4", "5", "6", "7"}));
}

TEST_CASE("on a node what is named is deleted, a folder or a file", "[tune][checkpoint]") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run-1";
  const auto first = written(run / "trials/0/1"), second = written(run / "trials/0/2");
  const auto file = run / "trials/0/file";
  std::ofstream(file) << "a checkpoint\n";
  tune::detail::remove_checkpoints(run, {first, file, run / "trials/0/that-is-not-there"},
                                   {second});
  CHECK_FALSE(fs::exists(first));
  CHECK_FALSE(fs::exists(file));
  CHECK(fs::exists(second / "weights"));
  tune::detail::remove_checkpoints(folder.path() / "no-run", {second}, {});
  CHECK(fs::exists(second / "weights"));
}

TEST_CASE("on a node nothing outside of the run's folder is deleted, whatever links lead there",
          "[tune][checkpoint]") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run-1", other = folder.path() / "run-10";
  const auto outside = written(other / "trials/0/1");
  written(run / "trials/0/1");
  fs::create_directory_symlink(outside, run / "trials/0/link");
  fs::create_directory_symlink(other / "trials/0", run / "trials/1");
  const auto relative = fs::relative(run / "trials/0/1");
  tune::detail::remove_checkpoints(run,
                                   {outside, run / "trials/0/link", run / "trials/1/1", run,
                                    folder.path(), run / ".." / "run-10", relative, ""},
                                   {});
  CHECK(fs::exists(outside / "weights"));
  CHECK(fs::is_symlink(run / "trials/0/link"));
  CHECK(fs::exists(run / "trials/0/1/weights"));
  // The run's folder may be reached by a link itself.
  fs::create_directory_symlink(run, folder.path() / "run-link");
  const auto linked = folder.path() / "run-link";
  tune::detail::remove_checkpoints(linked, {linked / "trials/0/1"}, {});
  CHECK_FALSE(fs::exists(run / "trials/0/1"));
  CHECK(fs::exists(run / "trials"));
}

TEST_CASE("on a node nothing that holds a checkpoint which stays is deleted, also by a link",
          "[tune][checkpoint]") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run-1";
  const auto first = written(run / "trials/0/1"), second = written(run / "trials/0/2");
  fs::create_directory_symlink(first, run / "trials/0/latest");
  tune::detail::remove_checkpoints(run, {first, run / "trials/0", second},
                                   {run / "trials/0/latest"});
  CHECK(fs::exists(first / "weights"));
  CHECK_FALSE(fs::exists(second));
  // Without it, the link goes, and not what it leads to.
  tune::detail::remove_checkpoints(run, {run / "trials/0/latest"}, {});
  CHECK_FALSE(fs::is_symlink(run / "trials/0/latest"));
  CHECK(fs::exists(first / "weights"));
}

}  // namespace node_removals_test
