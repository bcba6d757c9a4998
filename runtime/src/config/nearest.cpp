#include "config/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::config {
namespace {

/// Levenshtein's distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

/// How far from a name a misspelt one may be.
std::size_t most_distance(const std::string& name) {
  return std::max<std::size_t>(2, name.size() / 3);
}

/// Their distance is at least the difference of their lengths: a very long text is compared with none.
bool may_be_near(const std::string& wrong, const std::string& name) {
  const auto [shorter, longer] = std::minmax({wrong.size(), name.size()});
  return longer - shorter <= most_distance(name);
}

}  // namespace

std::string nearest(const std::string& wrong, const std::vector<std::string>& names) {
  std::string found;
  std::size_t least = 0;
  for (const auto& name : names) {
    if (!may_be_near(wrong, name)) continue;
    const auto far = distance(wrong, name);
    if (far > most_distance(name) || (!found.empty() && far >= least)) continue;
    found = name;
    least = far;
  }
  return found;
}

std::string nearest_in_words(const std::string& wrong, const std::vector<std::string>& names) {
  const auto name = nearest(wrong, names);
  return name.empty() ? "" : fmt::format("; did you mean '{}'?", name);
}

std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& names) {
  if (auto near = nearest_in_words(wrong, names); !near.empty()) return near;
  return names.empty() ? "" : fmt::format("; there is {}", fmt::join(names, ", "));
}

}  // namespace troupe::config
