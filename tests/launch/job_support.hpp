#pragma once

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

/// `troupe job` as its users have it, for the tests of jobs.
namespace troupe::test {

inline std::vector<std::string> job_environment(const TestCluster& cluster,
                                                const std::vector<std::string>& more = {}) {
  auto environment = cluster.environment();
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

inline std::vector<std::string> job_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TROUPE_PROGRAM, "job"});
  return arguments;
}

inline Finished job(const TestCluster& cluster, std::vector<std::string> arguments,
                    const std::vector<std::string>& more = {}) {
  return run(job_command(std::move(arguments)), job_environment(cluster, more));
}

/// A command of which the test does not wait for the end.
inline Child start_job(const TestCluster& cluster, std::vector<std::string> arguments) {
  return Child(job_command(std::move(arguments)), job_environment(cluster));
}

/// A job as `troupe job list --json` has it; null: it is not listed.
inline nlohmann::json row(const TestCluster& cluster, const std::string& name) {
  const auto all = printed_by(job_command({"list", "--json"}), job_environment(cluster, {}));
  for (const auto& listed : nlohmann::json::parse(all)) {
    if (listed.at("job") == name) return listed;
  }
  return {};
}

inline std::string state(const TestCluster& cluster, const std::string& name) {
  const auto listed = row(cluster, name);
  return listed.is_null() ? "not listed" : listed.at("state").get<std::string>();
}

inline bool is_over(const TestCluster& cluster, const std::string& name) {
  return eventually([&] {
    const auto listed = row(cluster, name);
    return !listed.is_null() && listed.value("is_over", false);
  });
}

/// Of a cluster's workers, the one whose node has that name: "w1" is the first.
inline Child& worker_named(TestCluster& cluster, const std::string& node) {
  return cluster.worker(static_cast<std::size_t>(std::stoi(node.substr(1)) - 1));
}

/// An actor as `troupe status --json` has it; null: there is none of that name.
inline nlohmann::json actor_named(const TestCluster& cluster, const std::string& name) {
  const auto status = nlohmann::json::parse(cluster.status());
  for (const auto& actor : status.at("actors")) {
    if (actor.at("name") == name) return actor;
  }
  return {};
}

/// Of a file; 0 where there is none.
inline int lines_of(const std::string& file) {
  std::ifstream in(file);
  return static_cast<int>(
      std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
}

}  // namespace troupe::test
