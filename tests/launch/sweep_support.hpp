#pragma once

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

namespace troupe::test {

inline const std::vector<std::string> kNoClusterForSweeps{"TROUPE_ADDRESS=", "TROUPE_TOKEN="};

/// A sweep over a shell script, in a folder of its own.
class Sweep {
 public:
  /// `script`: of each trial, with the fields x and step. `more`: of the file.
  explicit Sweep(const std::string& script, const std::string& more = "") {
    std::ofstream(folder_.path() + "/trial.sh") << script;
    std::ofstream(folder_.path() + "/sweep.toml")
        << "command = [\"sh\", \"trial.sh\", \"{x}\"]\nmetric = \"loss\"\nstorage = \"runs\"\n"
        << more;
  }
  Finished tune(const std::string& what, std::vector<std::string> more = {},
                const std::vector<std::string>& environment = kNoClusterForSweeps) const {
    more.insert(more.begin(), {TROUPE_PROGRAM, "tune", what, folder_.path() + "/sweep.toml"});
    return run(std::move(more), environment, std::chrono::seconds(90));
  }
  Child start() const {
    return Child({TROUPE_PROGRAM, "tune", "run", folder_.path() + "/sweep.toml"},
                 kNoClusterForSweeps);
  }
  std::string content(const std::string& file) const {
    std::ifstream in(folder_.path() + "/" + file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  nlohmann::json summary(int run = 1) const {
    return nlohmann::json::parse(content("runs/run-" + std::to_string(run) + "/summary.json"));
  }
  const std::string& folder() const { return folder_.path(); }
  /// Living processes of its trials, and of no other sweep's.
  std::vector<pid_t> programs() const {
    return processes_with_value_in("TROUPE_CHECKPOINT_DIR", folder_.path());
  }

 private:
  TemporaryFolder folder_;
};

/// Of a program that comes to its end by itself, within a minute.
inline int exit_code_of(Child& child) {
  const auto status = child.wait();
  INFO(child.output());
  REQUIRE(status);
  REQUIRE(WIFEXITED(*status));
  return WEXITSTATUS(*status);
}

inline constexpr const char* kGrid = "[space]\nx = { grid = [3, 1, 2] }\n";

}  // namespace troupe::test
