#include "objectives/dominance.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace troupe::tune {

bool dominates(const Scores& a, const Scores& b) {
  assert(a.size() == b.size());
  bool is_better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] < b[i]) return false;
    is_better = is_better || a[i] > b[i];
  }
  return is_better;
}

std::vector<std::vector<std::size_t>> non_dominated_fronts(const std::vector<Scores>& all) {
  std::vector<std::vector<std::size_t>> dominated(all.size());
  std::vector<std::size_t> dominators(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (!dominates(all[i], all[j])) continue;
      dominated[i].push_back(j);
      ++dominators[j];
    }
  }
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (dominators[i] == 0) front.push_back(i);
  }
  std::vector<std::vector<std::size_t>> fronts;
  while (!front.empty()) {
    std::vector<std::size_t> next;
    for (const auto i : front) {
      for (const auto j : dominated[i]) {
        if (--dominators[j] == 0) next.push_back(j);
      }
    }
    std::ranges::sort(next);
    fronts.push_back(std::exchange(front, std::move(next)));
  }
  return fronts;
}

std::vector<std::vector<std::size_t>> non_dominated_fronts(const std::vector<Scores>& all,
                                                           const std::vector<double>& violations) {
  assert(all.size() == violations.size());
  std::map<double, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < all.size(); ++i) alike[violations[i]].push_back(i);
  std::vector<std::vector<std::size_t>> fronts;
  for (const auto& [violation, places] : alike) {
    std::vector<Scores> scores;
    for (const auto place : places) scores.push_back(all[place]);
    for (auto& front : non_dominated_fronts(scores)) {
      for (auto& place : front) place = places[place];
      fronts.push_back(std::move(front));
    }
  }
  return fronts;
}

std::vector<double> crowding_distances(const std::vector<Scores>& front) {
  std::vector<double> distances(front.size());
  if (front.empty()) return distances;
  std::vector<std::size_t> order(front.size());
  for (std::size_t objective = 0; objective < front.front().size(); ++objective) {
    const auto at = [&](std::size_t place) { return front[order[place]][objective]; };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return front[i][objective]; });
    const auto last = front.size() - 1;
    const double extent = at(last) - at(0);
    if (!(extent > 0) || !std::isfinite(extent)) continue;
    for (const auto end : {order.front(), order.back()})
      distances[end] = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < last; ++i) distances[order[i]] += (at(i + 1) - at(i - 1)) / extent;
  }
  return distances;
}

}  // namespace troupe::tune
