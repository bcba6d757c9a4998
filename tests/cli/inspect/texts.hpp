#pragma once

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/child.hpp"

namespace troupe::test {

/// What a shell command prints; fails the test where it does not end with 0.
inline std::string shell(const std::string& command,
                         const std::vector<std::string>& environment = {}) {
  const auto done = run({"/bin/sh", "-c", command}, environment);
  INFO(command << " printed:\n" << done.output);
  REQUIRE(done.exit_code == 0);
  return done.output;
}

inline bool is_installed(const std::string& program) {
  return run({"/bin/sh", "-c", "command -v " + program}).exit_code == 0;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

/// `troupe` with the words of a command, "job submit", and more.
inline std::vector<std::string> command_line(const std::string& path,
                                             const std::vector<std::string>& more) {
  std::vector<std::string> words{TROUPE_PROGRAM};
  std::istringstream in(path);
  for (std::string word; in >> word;) words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Those of a group, of the program where `group` is empty, as its help lists them.
inline std::vector<std::string> commands_of(const std::string& group) {
  std::vector<std::string> names;
  bool here = false;
  for (const auto& line : lines_of(run(command_line(group, {"--help"})).output)) {
    std::smatch found;
    if (line == "Subcommands:") here = true;
    if (here && line.empty()) break;
    if (here && std::regex_search(line, found, std::regex("^  ([a-z]+) ")))
      names.push_back(found[1]);
  }
  return names;
}

/// The paths of all that there are below `group`: "run", "job", "job submit", ...
inline std::vector<std::string> all_commands(const std::string& group = "") {
  std::vector<std::string> paths;
  for (const auto& name : commands_of(group)) {
    const auto path = group.empty() ? name : group + " " + name;
    paths.push_back(path);
    const auto below = all_commands(path);
    paths.insert(paths.end(), below.begin(), below.end());
  }
  return paths;
}

/// Those that have commands: `troupe tune` is one where Troupe was built with it.
inline std::vector<std::string> all_groups() {
  std::vector<std::string> groups;
  for (const auto& path : all_commands())
    if (!commands_of(path).empty()) groups.push_back(path);
  REQUIRE(!groups.empty());
  return groups;
}
inline bool has_tune() { return !commands_of("tune").empty(); }

/// The long ones, as the help of the command lists them.
inline std::set<std::string> options_of(const std::string& path) {
  std::set<std::string> names;
  for (const auto& line : lines_of(run(command_line(path, {"--help"})).output)) {
    if (!std::regex_search(line, std::regex("^  -"))) continue;
    const auto columns = line.substr(0, line.find("  ", 2));
    const std::regex name("--[a-z-]+");
    for (std::sregex_iterator at(columns.begin(), columns.end(), name), end; at != end; ++at)
      names.insert(at->str());
  }
  return names;
}

}  // namespace troupe::test
