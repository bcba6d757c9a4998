#include "searchers/given.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "text/json.hpp"

namespace troupe::tune {
namespace {

Json given_json(const std::vector<Configuration>& first,
                const std::vector<GivenSearcher::Known>& known) {
  Json json{{"first", Json::array()}, {"known", Json::array()}};
  for (const auto& config : first) json["first"].push_back(to_json(config));
  for (const auto& [config, value, values, violation] : known) {
    Json result{to_json(config), to_json(value)};
    for (const double each : values) result.push_back(to_json(each));
    if (violation != 0) result.push_back({{"violation", to_json(violation)}});
    json["known"].push_back(std::move(result));
  }
  return json;
}

}  // namespace

GivenSearcher::GivenSearcher(std::unique_ptr<Searcher> search, std::vector<Configuration> first,
                             std::vector<Known> known, std::uint64_t trials)
    : search_{std::move(search)},
      first_{std::move(first)},
      known_{std::move(known)},
      trials_{trials} {
  for (TrialId at = 0; at < known_.size(); ++at) {
    const auto& [config, value, values, violation] = known_[at];
    search_->give(at, config);
    TrialEnd end{.last = value, .t = 1, .values = values, .violation = violation};
    if (std::isfinite(value)) end.best = value;
    search_->on_end(at, end);
  }
}

Suggestion GivenSearcher::suggest(TrialId trial) {
  if (trials_ > 0 && trial >= trials_) return NoMore{};
  const auto its = trial + known_.size();
  if (trial >= first_.size()) return search_->suggest(its);
  search_->give(its, first_[trial]);
  return first_[trial];
}

void GivenSearcher::on_report(TrialId trial, std::int64_t t, double value) {
  search_->on_report(trial + known_.size(), t, value);
}

void GivenSearcher::on_end(TrialId trial, const TrialEnd& end) {
  search_->on_end(trial + known_.size(), end);
}

std::optional<std::uint64_t> GivenSearcher::size() const {
  if (trials_ > 0) return trials_;
  const auto size = search_->size();
  return size ? std::optional(*size - known_.size()) : std::nullopt;
}

std::string GivenSearcher::save() const {
  return dump({{"searcher", "given"},
               {"given", given_json(first_, known_)},
               {"trials", trials_},
               {"search", parse(search_->save(), "a searcher's state")}});
}

void GivenSearcher::load(std::string_view saved) {
  const auto json = parse(saved, "a searcher's state");
  const auto own = given_json(first_, known_);
  const auto there = json.is_object() ? json.value("given", Json()) : Json();
  if (there != own || json.value("trials", std::uint64_t{0}) > trials_) {
    throw std::invalid_argument(
        fmt::format("saved by another search: .first and .known are {} there, {} here", dump(there),
                    dump(own)));
  }
  search_->load(dump(json.at("search")));
}

}  // namespace troupe::tune
