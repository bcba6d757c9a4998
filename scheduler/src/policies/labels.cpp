#include "policies/labels.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::scheduler {
namespace {

std::string to_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
  return text.empty() ? "no labels" : text;
}

std::size_t count_of(const Labels& labels, const Labels& wanted) {
  return static_cast<std::size_t>(std::ranges::count_if(
      wanted, [&](const auto& label) { return std::ranges::count(labels, label) > 0; }));
}

}  // namespace

bool has_all(const Labels& labels, const Labels& wanted) {
  return count_of(labels, wanted) == wanted.size();
}

std::vector<Candidate> with_labels(const Labels& wanted, std::span<const Candidate> candidates) {
  std::vector<Candidate> matching;
  std::ranges::copy_if(candidates, std::back_inserter(matching), [&](const Candidate& candidate) {
    return matches(*candidate.labels, wanted);
  });
  return matching;
}

std::string explain_labels(const Labels& wanted, std::span<const Candidate> candidates) {
  const auto closest = std::ranges::max_element(
      candidates, {}, [&](const Candidate& c) { return count_of(*c.labels, wanted); });
  if (closest == candidates.end())
    return fmt::format("no node has {}, as there is no node", to_text(wanted));
  return fmt::format("no node has {}; the closest is {} with {}", to_text(wanted),
                     to_string(*closest), to_text(*closest->labels));
}

}  // namespace troupe::scheduler
