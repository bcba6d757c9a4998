#include <troupe/tune/searcher.hpp>

#include <stdexcept>

#include <fmt/format.h>

#include "searchers/saved_search.hpp"

namespace troupe::tune {
namespace {

constexpr std::uint64_t kMostPoints = 1'000'000'000;

Json described(std::string_view kind, const SearchSpace& space, std::uint64_t seed,
               std::uint64_t trials) {
  return {{"searcher", kind}, {"seed", seed}, {"trials", trials}, {"space", to_json(space)}};
}

/// A random search is a function of its parameters, so all there is to load is that these are the
/// same, but for trials that are added.
void check_same(const std::string& own, std::string_view saved) {
  auto there = parse(saved, "a searcher's state"), here = parse(own, "a searcher's state");
  if (take_trials(there) <= take_trials(here) && dump(there) == dump(here)) return;
  throw std::invalid_argument(
      fmt::format("saved by another search: {} there, {} here", saved, own));
}

std::uint64_t grid_points(const SearchSpace& space) {
  std::uint64_t points = 1;
  for (const auto& [name, domain] : space) {
    if (domain.kind() != Domain::Kind::Grid) continue;
    points *= domain.values().size();
    if (points > kMostPoints)
      throw std::invalid_argument(fmt::format("the grid has more than {} points", kMostPoints));
  }
  return points;
}

}  // namespace

RandomSearcher::RandomSearcher(SearchSpace space, std::uint64_t seed, std::uint64_t trials)
    : space_{std::move(space)}, seed_{seed}, trials_{trials} {}

Suggestion RandomSearcher::suggest(TrialId trial) {
  if (trial >= trials_) return NoMore{};
  Configuration configuration;
  for (const auto& [name, domain] : space_) {
    Random random(seed_, trial, name);
    configuration.emplace_back(name, domain.sample(random));
  }
  return configuration;
}

std::string RandomSearcher::save() const {
  return dump(described("random", space_, seed_, trials_));
}
void RandomSearcher::load(std::string_view saved) { check_same(save(), saved); }

GridSearcher::GridSearcher(SearchSpace space, std::uint64_t seed, std::uint64_t samples,
                           std::uint64_t trials)
    : space_{std::move(space)},
      seed_{seed},
      points_{grid_points(space_)},
      trials_{trials ? trials : points_ * samples} {
  if (trials_ == 0) throw std::invalid_argument("a grid search needs .samples or .trials above 0");
}

void GridSearcher::give(TrialId, const Configuration&) { ++given_; }

Suggestion GridSearcher::suggest(TrialId trial) {
  if (trial >= given_ + trials_) return NoMore{};
  Configuration configuration;
  auto rest = (trial - given_) % points_;
  for (const auto& [name, domain] : space_) {
    Random random(seed_, trial, name);
    if (domain.kind() != Domain::Kind::Grid) {
      configuration.emplace_back(name, domain.sample(random));
      continue;
    }
    configuration.emplace_back(name, domain.values()[rest % domain.values().size()]);
    rest /= domain.values().size();
  }
  return configuration;
}

std::string GridSearcher::save() const {
  auto json = described("grid", space_, seed_, trials_);
  json["given"] = given_;
  return dump(json);
}

void GridSearcher::load(std::string_view saved) {
  auto json = parse(saved, "a searcher's state");
  const auto given = json.is_object() ? json.value("given", std::uint64_t{0}) : 0;
  json["given"] = given_;
  check_same(save(), dump(json));
  given_ = given;
}

}  // namespace troupe::tune
