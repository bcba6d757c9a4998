// A cluster whose processes stand still half of the time loses nothing (docs/promises.md).
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "freezer.hpp"
#include "guard.hpp"
#include "rounds.hpp"
#include "support/child.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr unsigned kSeconds = rounds(30);
/// A machine is slower by what it stands still, and a test of it has to come to its end there.
constexpr auto kPatience = 2 * kGuard;

/// A head, two workers and those who use them, each in the group of its machine.
class StarvedCluster {
 public:
  /// `machines`: 1, where all stand still at the same time, or more. False where no group can be.
  bool begin(std::size_t machines) {
    for (std::size_t i = 0; i < machines; ++i) {
      const auto folder = Freezer::make_folder("starved-" + std::to_string(i));
      if (!folder) return false;
      machines_.push_back(std::make_unique<Freezer>(*folder, static_cast<unsigned>(7 + i)));
    }
    head_ = start(0, {TROUPE_PROGRAM, "head", "--port", "0", "--no-node"});
    head_->wait_for_output("token file:");
    std::ifstream(folder_.path() + "/troupe/address") >> address_;
    REQUIRE_FALSE(address_.empty());
    for (auto& machine : machines_) machine->take_turns();
    for (std::size_t i = 1; i <= 2; ++i) {
      workers_.push_back(start(i, {TROUPE_PROGRAM, "worker", "--head", address_, "--cpus", "4"}));
    }
    for (auto& worker : workers_) worker->wait_for_output("of the cluster at");
    return true;
  }
  /// Asks it to stop, and expects that it does.
  void end() {
    CHECK(finish(*start(3, {TROUPE_PROGRAM, "stop"})) == 0);
    REQUIRE(head_->wait(kPatience));
    for (auto& worker : workers_) REQUIRE(worker->wait(kPatience));
    CHECK(eventually([this] { return processes_with("XDG_STATE_HOME=" + folder()).empty(); }));
    for (const auto& machine : machines_) CHECK(machine->turns() > 0);
    INFO(told());
    CHECK_THAT(told(), !Contains("lost") && !Contains("silent") && !Contains("killed") &&
                           !Contains("ended by signal"));
  }

  /// On the machine with this number, modulo their count.
  std::unique_ptr<Child> start(std::size_t machine, const std::vector<std::string>& command) const {
    return std::make_unique<Child>(
        machines_[machine % machines_.size()]->within(command),
        std::vector<std::string>{"XDG_STATE_HOME=" + folder_.path(),
                                 "TROUPE_TOKEN=", "TROUPE_ADDRESS=" + address_},
        Streams::Apart);
  }
  /// -> its status; with what it has printed, where the test fails then.
  static int finish(Child& child) {
    const auto status = child.wait(kPatience);
    INFO(child.output() << "\n-- standard error:\n" << child.errors());
    REQUIRE(status);
    CHECK(*status == 0);
    return *status;
  }
  std::string folder() const { return folder_.path(); }

 private:
  std::string told() const {
    auto all = head_->output() + head_->errors();
    for (const auto& worker : workers_) all += worker->output() + worker->errors();
    return all;
  }

  TemporaryFolder folder_;
  std::string address_;
  std::vector<std::unique_ptr<Freezer>> machines_;
  std::unique_ptr<Child> head_;
  std::vector<std::unique_ptr<Child>> workers_;
};

std::string write_sweep(const std::string& folder) {
  std::ofstream(folder + "/trial.sh")
      << "for step in 1 2 3; do echo \"troupe: {\\\"loss\\\": $1}\"; sleep 0.2; done\n";
  std::ofstream(folder + "/sweep.toml")
      << "command = [\"sh\", \"" << folder << "/trial.sh\", \"{x}\"]\nmetric = \"loss\"\n"
      << "storage = \"" << folder << "/runs\"\n[space]\nx = { grid = [3, 1, 2, 5, 4, 6] }\n";
  return folder + "/sweep.toml";
}

/// Every line that its tasks have printed is on the driver's terminal, once.
void check_lines(const std::string& output) {
  const std::regex end("all is well: .* ([0-9]+) lines");
  std::smatch found;
  REQUIRE(std::regex_search(output, found, end));
  const int lines = std::stoi(found[1]);
  CHECK(lines > 0);
  std::vector<int> printed(static_cast<std::size_t>(lines));
  const std::regex line("line ([0-9]+) of [0-9]+\n");
  for (std::sregex_iterator at(output.begin(), output.end(), line), none; at != none; ++at)
    ++printed.at(static_cast<std::size_t>(std::stoi((*at)[1])));
  INFO(output);
  CHECK(printed == std::vector<int>(printed.size(), 1));
}

void loses_nothing(std::size_t machines) {
  StarvedCluster cluster;
  if (!cluster.begin(machines)) {
    WARN("skipped: a cgroup that can be frozen needs root and the kernel's freezer");
    return;
  }
  const auto driver = cluster.start(3, {TROUPE_STARVED_DRIVER, std::to_string(kSeconds)});
  const auto sweep =
      cluster.start(3, {TROUPE_PROGRAM, "tune", "run", write_sweep(cluster.folder())});
  const auto gang =
      cluster.start(3, {TROUPE_PROGRAM, "run", "-n", "2", "--", "sh", "-c",
                        "for i in 1 2 3 4 5 6 7 8 9; do echo \"$RANK says $i\"; sleep 0.5; done"});
  for (int i = 0; i < 10; ++i) {
    const auto asked = cluster.start(3, {TROUPE_PROGRAM, "status", "--json"});
    StarvedCluster::finish(*asked);
    CHECK(nlohmann::json::parse(asked->output()).at("nodes").size() == 2);
  }
  StarvedCluster::finish(*gang);
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 1; i < 10; ++i)
      CHECK_THAT(gang->output(), Contains(std::to_string(rank) + " says " + std::to_string(i)));
  }
  StarvedCluster::finish(*sweep);
  const auto shown = cluster.start(
      3, {TROUPE_PROGRAM, "tune", "show", cluster.folder() + "/sweep.toml", "--json"});
  StarvedCluster::finish(*shown);
  const auto told = nlohmann::json::parse(shown->output());
  CHECK(told.at("trials").size() == 6);
  for (const auto& trial : told.at("trials")) CHECK(trial.at("status") == "terminated");
  StarvedCluster::finish(*driver);
  check_lines(driver->output() + driver->errors());
  cluster.end();
}

}  // namespace

TEST_CASE("a cluster on a machine that stands still half of the time loses nothing",
          "[cli][starved]") {
  loses_nothing(1);
}

TEST_CASE("a cluster of machines each of which stands still half of the time loses nothing",
          "[cli][starved]") {
  loses_nothing(4);
}
