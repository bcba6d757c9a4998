#pragma once

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/cluster.hpp"

namespace troupe::test {

/// What `troupe doctor --json` has found.
struct Examined {
  int exit_code = 0;
  nlohmann::json report;

  /// The first of that name; null: there is none.
  nlohmann::json finding(const std::string& what) const {
    for (const auto& finding : report.at("findings"))
      if (finding.at("what") == what) return finding;
    return nullptr;
  }
  std::string level(const std::string& what) const { return finding(what).value("level", ""); }
  std::string value(const std::string& what) const { return finding(what).value("value", ""); }
  std::string remedy(const std::string& what) const { return finding(what).value("remedy", ""); }
};

/// `command`: `troupe doctor --json`, or what ends as that.
inline Examined examine(std::vector<std::string> command,
                        const std::vector<std::string>& environment) {
  const auto done = run(std::move(command), environment, kGuard, Streams::Apart);
  INFO(done.output << done.errors);
  return {done.exit_code, nlohmann::json::parse(done.output)};
}

/// A machine without a cluster, as far as this folder tells.
struct Alone {
  TemporaryFolder folder;
  const std::vector<std::string> environment{"XDG_STATE_HOME=" + folder.path(),
                                             "TROUPE_TOKEN=", "TROUPE_ADDRESS="};

  /// `more`: options of the doctor's.
  Examined doctor(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command{TROUPE_PROGRAM, "doctor", "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return examine(std::move(command), environment);
  }
  /// With these variables besides.
  Examined doctor_with(const std::vector<std::string>& variables) const {
    return examine({TROUPE_PROGRAM, "doctor", "--json"}, and_also(variables));
  }
  /// After a command of sh, to which $1 is this folder.
  Examined doctor_after(const std::string& command,
                        const std::vector<std::string>& variables = {}) const {
    return examine(
        {"/bin/sh", "-c", command + " && exec \"$0\" doctor --json", TROUPE_PROGRAM, folder.path()},
        and_also(variables));
  }

 private:
  std::vector<std::string> and_also(const std::vector<std::string>& variables) const {
    auto all = environment;
    for (const auto& variable : variables) {  // the last of two namesakes would not count
      const auto name = variable.substr(0, variable.find('=') + 1);
      std::erase_if(all, [&](const auto& other) { return other.starts_with(name); });
      all.push_back(variable);
    }
    return all;
  }
};

inline Examined doctor(const TestCluster& cluster) {
  return examine({TROUPE_PROGRAM, "doctor", "--json"}, cluster.environment());
}

}  // namespace troupe::test
