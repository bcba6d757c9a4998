#include "searchers/completed.hpp"

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "text/json.hpp"

namespace troupe::tune {

CompletedSearcher::CompletedSearcher(std::unique_ptr<Searcher> search, Completion completion,
                                     std::uint64_t points)
    : search_{std::move(search)}, completion_{std::move(completion)} {
  std::set<std::string> seen;
  for (TrialId point = 0; point < points; ++point) {
    const auto drawn = std::get<Configuration>(search_->suggest(point));
    if (seen.insert(dump(to_json(completion_.complete(drawn)))).second) different_.push_back(point);
  }
}

TrialId CompletedSearcher::inner(TrialId trial) const {
  return different_.empty() ? trial : different_.at(trial);
}

Suggestion CompletedSearcher::suggest(TrialId trial) {
  if (!different_.empty() && trial >= different_.size()) return NoMore{};
  auto suggestion = search_->suggest(inner(trial));
  if (auto* drawn = std::get_if<Configuration>(&suggestion)) *drawn = completion_.complete(*drawn);
  return suggestion;
}

void CompletedSearcher::on_report(TrialId trial, std::int64_t t, double value) {
  search_->on_report(inner(trial), t, value);
}

void CompletedSearcher::on_end(TrialId trial, const TrialEnd& end) {
  search_->on_end(inner(trial), end);
}

std::optional<std::uint64_t> CompletedSearcher::size() const {
  return different_.empty() ? search_->size() : different_.size();
}

std::string CompletedSearcher::save() const {
  Json json{{"searcher", "completed"},
            {"computed", completion_.computed},
            {"conditional", completion_.conditional},
            {"search", parse(search_->save(), "a searcher's state")}};
  if (!completion_.conditions.empty()) json["conditions"] = completion_.conditions;
  return dump(json);
}

void CompletedSearcher::load(std::string_view saved) {
  const auto json = parse(saved, "a searcher's state");
  const auto own = parse(save(), "a searcher's state");
  for (const auto* key : {"searcher", "computed", "conditional", "conditions"}) {
    const auto there = json.is_object() ? json.value(key, Json()) : Json();
    const auto here = own.value(key, Json());
    if (there == here) continue;
    throw std::invalid_argument(fmt::format("saved by another search: {} is {} there, {} here", key,
                                            dump(there), dump(here)));
  }
  search_->load(dump(json.at("search")));
}

}  // namespace troupe::tune
