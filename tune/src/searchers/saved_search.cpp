#include "searchers/saved_search.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::tune {

Json search_identity(std::string_view searcher, const SearchSetup& setup) {
  Json json{{"searcher", searcher},
            {"seed", setup.seed},
            {"trials", setup.trials},
            {"metric", setup.objective.metric},
            {"mode", setup.objective.mode == Mode::Max ? "max" : "min"}};
  if (!setup.objectives.empty()) json["objectives"] = to_json(setup.objectives);
  if (!setup.constraints.empty()) json["constraints"] = to_json(setup.constraints);
  json["space"] = to_json(setup.space);
  return json;
}

std::vector<std::uint64_t> take_trials(Json& state) {
  std::vector<std::uint64_t> numbers;
  for (auto* each = &state; each->is_object();) {
    if (each->contains("trials") && each->at("trials").is_number_unsigned()) {
      numbers.push_back(each->at("trials").get<std::uint64_t>());
      each->erase("trials");
    }
    if (!each->contains("search")) break;
    each = &each->at("search");
  }
  return numbers;
}

Json parse_saved_search(std::string_view saved, const Json& identity) {
  auto json = parse(saved, "a searcher's state");
  if (!json.is_object())
    throw std::invalid_argument(fmt::format("not a searcher's state: '{}'", saved.substr(0, 80)));
  for (const auto& [key, own] : identity.items()) {
    const auto there = json.value(key, Json());
    // As text, so that fields in another order differ, and numbers are the same to the last digit.
    if (dump(there) == dump(own)) continue;
    if (key == "trials" && there.is_number_unsigned() && there < own) continue;
    throw std::invalid_argument(fmt::format("saved by another search: {} is {} there, {} here", key,
                                            dump(there), dump(own)));
  }
  return json;
}

void require_trials(std::string_view searcher, const SearchSetup& setup) {
  if (setup.trials > 0) return;
  throw std::invalid_argument(fmt::format(
      "tune: .trials is 0, and {} walks no grid that would say how many; give .trials", searcher));
}

}  // namespace troupe::tune
