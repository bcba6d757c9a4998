#include "support/cluster.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace troupe::test {

TestCluster::TestCluster(int workers, int cpus_each) {
  head_ = std::make_unique<Child>(
      std::vector<std::string>{TROUPE_PROGRAM, "head", "--port", "0", "--no-node"}, environment());
  head_->wait_for_output("token file:");
  std::ifstream(folder_.path() + "/troupe/address") >> address_;
  REQUIRE_FALSE(address_.empty());
  for (int i = 0; i < workers; ++i)
    add_worker({"--cpus", std::to_string(cpus_each), "--name", "w" + std::to_string(i + 1)});
}

TestCluster::~TestCluster() {
  if (head_->wait(std::chrono::milliseconds(0))) return;  // the test has ended it
  const auto stopped = run({TROUPE_PROGRAM, "stop"}, environment());
  CHECK(stopped.exit_code == 0);
  for (auto& worker : workers_) CHECK(worker->wait());
  CHECK(head_->wait());
  CHECK(eventually([this] { return processes_with("XDG_STATE_HOME=" + folder_.path()).empty(); }));
}

std::vector<std::string> TestCluster::environment() const {
  std::vector<std::string> variables{"XDG_STATE_HOME=" + folder_.path(), "TROUPE_TOKEN="};
  variables.push_back("TROUPE_ADDRESS=" + address_);
  return variables;
}

void TestCluster::add_worker(const std::vector<std::string>& more,
                             const std::vector<std::string>& variables) {
  std::vector<std::string> arguments{TROUPE_PROGRAM, "worker", "--head", address_};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto all = environment();
  all.insert(all.end(), variables.begin(), variables.end());
  workers_.push_back(std::make_unique<Child>(std::move(arguments), all));
  workers_.back()->wait_for_output("of the cluster at");
}

Child TestCluster::driver(const std::string& what, const std::vector<std::string>& more) const {
  std::vector<std::string> arguments{TROUPE_TEST_DRIVER, what};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Child(std::move(arguments), environment());
}

Finished TestCluster::run_driver(const std::string& what) const {
  return run({TROUPE_TEST_DRIVER, what}, environment());
}

std::string TestCluster::status() const {
  return printed_by({TROUPE_PROGRAM, "status", "--json"}, environment());
}

bool TestCluster::has_node_silent_for(double seconds) const {
  return eventually([&] {
    const auto nodes = nlohmann::json::parse(status()).at("nodes");
    return std::ranges::any_of(
        nodes, [&](const auto& node) { return node.at("silent_seconds") > seconds; });
  });
}

bool TestCluster::all_is_free() const {
  return eventually([this] {
    const auto status = nlohmann::json::parse(this->status());
    for (const auto& node : status["nodes"]) {
      if (node["free"] != node["total"]) return false;
    }
    return status["processes"].empty();
  });
}

}  // namespace troupe::test
