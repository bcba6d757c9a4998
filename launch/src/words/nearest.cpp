#include "words/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::launch {
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

}  // namespace

std::string nearest(const std::string& wrong, const std::vector<std::string>& names) {
  const auto found = std::ranges::min_element(
      names, {}, [&wrong](const std::string& name) { return distance(wrong, name); });
  if (found == names.end()) return {};
  return distance(wrong, *found) <= std::max<std::size_t>(2, found->size() / 3) ? *found : "";
}

std::string nearest_in_words(const std::string& wrong, const std::vector<std::string>& names) {
  const auto name = nearest(wrong, names);
  return name.empty() ? "" : fmt::format("; did you mean '{}'?", name);
}

std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& names) {
  if (auto near = nearest_in_words(wrong, names); !near.empty()) return near;
  return names.empty() ? "" : fmt::format("; there is {}", fmt::join(names, ", "));
}

}  // namespace troupe::launch
