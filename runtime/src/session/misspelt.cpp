#include "session/misspelt.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <numeric>

#include <fmt/format.h>

namespace troupe::runtime {
namespace {

constexpr std::size_t kMostLetters = 2;

/// Letters to be put in, left out or changed to make one of the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const auto changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> meant_by(std::string_view argument) {
  argument = argument.substr(0, argument.find('='));
  // Half of its letters may differ in a short one, which is the program's own.
  if (!argument.starts_with('-') || argument.size() < 6) return std::nullopt;
  for (const auto option : {kAddress, kTokenFile, kNoWorkerOutput}) {
    if (argument == option) return std::nullopt;
  }
  for (const auto option : {kAddress, kTokenFile, kNoWorkerOutput}) {
    const auto longer = std::max(argument.size(), option.size());
    const auto shorter = std::min(argument.size(), option.size());
    if (longer - shorter <= kMostLetters && distance(argument, option) <= kMostLetters)
      return option;
  }
  return std::nullopt;
}

std::vector<std::string> misspelt_arguments(int argc, const char* const* argv) {
  std::vector<std::string> lines;
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view argument = argv[i];
    if (const auto option = meant_by(argument)) {
      lines.push_back(
          fmt::format("'{}' is no option of troupe::init, which passes over it: was {} meant?",
                      argument.substr(0, argument.find('=')), *option));
    }
  }
  return lines;
}

}  // namespace troupe::runtime
