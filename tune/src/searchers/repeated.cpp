#include <troupe/tune/searchers/repeated.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "searchers/saved_search.hpp"
#include "searchers/trial_end_json.hpp"

namespace troupe::tune {
namespace {

std::unique_ptr<Searcher> made(const SearcherFactory& searcher, const SearchSetup& setup) {
  if (searcher) return searcher(setup);
  return std::make_unique<RandomSearcher>(setup.space, setup.seed, setup.trials);
}

/// Of those that are finite; none: there is none.
std::optional<double> mean_of(const std::vector<TrialEnd>& ends,
                              std::optional<double> TrialEnd::*which) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& end : ends) {
    if (end.errored || !(end.*which) || !std::isfinite(*(end.*which))) continue;
    sum += *(end.*which);
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

bool has_finite_values(const TrialEnd& end) {
  return !end.errored && !end.values.empty() &&
         std::ranges::all_of(end.values, [](double x) { return std::isfinite(x); });
}

/// Over the trials that mean_values() looks at.
double mean_violation(const std::vector<TrialEnd>& ends) {
  double sum = 0, count = 0;
  for (const auto& end : ends) {
    if (!has_finite_values(end)) continue;
    sum += end.violation;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

/// Of each objective, over the trials of which all are finite; empty: there is none.
std::vector<double> mean_values(const std::vector<TrialEnd>& ends) {
  std::vector<double> sums;
  std::size_t count = 0;
  for (const auto& end : ends) {
    if (!has_finite_values(end)) continue;
    sums.resize(end.values.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += end.values[i];
    ++count;
  }
  for (auto& sum : sums) sum /= static_cast<double>(count);
  return sums;
}

TrialEnd mean_end(const std::vector<TrialEnd>& ends) {
  return {.best = mean_of(ends, &TrialEnd::best),
          .last = mean_of(ends, &TrialEnd::last),
          .t = std::ranges::max_element(ends, {}, &TrialEnd::t)->t,
          .errored = std::ranges::all_of(ends, &TrialEnd::errored),
          .stopped = std::ranges::any_of(ends, &TrialEnd::stopped),
          .values = mean_values(ends),
          .violation = mean_violation(ends)};
}

class RepeatedSearcher final : public Searcher {
 public:
  RepeatedSearcher(const SearcherFactory& searcher, const SearchSetup& setup, std::size_t times)
      : times_{times}, trials_{setup.trials}, search_{made(searcher, setup)} {}

  Suggestion suggest(TrialId trial) override;
  void give(TrialId trial, const Configuration& configuration) override;
  void on_end(TrialId trial, const TrialEnd& end) override;
  bool waits_for_ends() const override { return search_->waits_for_ends(); }
  std::uint64_t least_trials() const override {
    return std::max<std::uint64_t>(times_, search_->least_trials());
  }
  std::optional<std::uint64_t> size() const override {
    if (trials_ > 0) return given_ + (trials_ - std::min(given_, trials_)) / times_ * times_;
    const auto size = search_->size();
    return size ? std::optional(given_ + (*size - given_) * times_) : std::nullopt;
  }
  std::string save() const override;
  void load(std::string_view saved) override;

 private:
  /// The trials of one configuration, which are one trial to the searcher.
  struct Group {
    Configuration config = {};
    std::size_t wanted = 0;
    std::size_t begun = 0;
    std::vector<TrialEnd> ends = {};
  };

  std::size_t times_;
  std::uint64_t trials_;  // in all, those that were given among them; 0: the searcher says
  std::unique_ptr<Searcher> search_;
  std::uint64_t given_ = 0;
  TrialId groups_begun_ = 0;
  std::map<TrialId, Group> groups_ = {};      // that are not over, by the searcher's number
  std::map<TrialId, TrialId> group_of_ = {};  // of trials that run
};

Suggestion RepeatedSearcher::suggest(TrialId trial) {
  const auto last = groups_.empty() ? groups_.end() : std::prev(groups_.end());
  const bool joins = last != groups_.end() && last->first + 1 == groups_begun_ &&
                     last->second.begun < last->second.wanted;
  if (joins) {
    ++last->second.begun;
    group_of_[trial] = last->first;
    return last->second.config;
  }
  // What is left over is less than a configuration's trials.
  if (trials_ > 0 && trial + times_ > trials_) return NoMore{};
  auto suggestion = search_->suggest(groups_begun_);
  if (const auto* config = std::get_if<Configuration>(&suggestion)) {
    groups_[groups_begun_] = {.config = *config, .wanted = times_, .begun = 1};
    group_of_[trial] = groups_begun_++;
  }
  return suggestion;
}

void RepeatedSearcher::give(TrialId trial, const Configuration& configuration) {
  ++given_;
  search_->give(groups_begun_, configuration);
  groups_[groups_begun_] = {.config = configuration, .wanted = 1, .begun = 1};
  group_of_[trial] = groups_begun_++;
}

void RepeatedSearcher::on_end(TrialId trial, const TrialEnd& end) {
  const auto at = group_of_.extract(trial);
  if (!at) return;
  auto& group = groups_.at(at.mapped());
  group.ends.push_back(end);
  if (group.ends.size() < group.wanted) return;
  const auto mean = mean_end(group.ends);
  groups_.erase(at.mapped());
  search_->on_end(at.mapped(), mean);
}

std::string RepeatedSearcher::save() const {
  Json groups = Json::array();
  for (const auto& [number, group] : groups_) {
    Json ends = Json::array();
    for (const auto& end : group.ends) ends.push_back(to_json(end));
    Json config = Json::array();
    for (const auto& [name, value] : group.config)
      config.push_back(Json::array({name, tune::to_json(value)}));
    groups.push_back({{"group", number},
                      {"config", std::move(config)},
                      {"wanted", group.wanted},
                      {"begun", group.begun},
                      {"ends", std::move(ends)}});
  }
  Json running = Json::array();
  for (const auto& [trial, group] : group_of_) running.push_back(Json::array({trial, group}));
  return dump({{"searcher", "repeated"},
               {"times", times_},
               {"trials", trials_},
               {"given", given_},
               {"begun", groups_begun_},
               {"groups", std::move(groups)},
               {"running", std::move(running)},
               {"search", parse(search_->save(), "a searcher's state")}});
}

void RepeatedSearcher::load(std::string_view saved) {
  load_search(saved, {{"searcher", "repeated"}, {"times", times_}, {"trials", trials_}},
              [&](const Json& json) {
                std::map<TrialId, Group> groups;
                for (const auto& from : json.at("groups")) {
                  auto& group = groups[from.at("group").get<TrialId>()];
                  for (const auto& field : from.at("config"))
                    group.config.emplace_back(field.at(0).get<std::string>(),
                                              scalar_from(field.at(1)));
                  group.wanted = from.at("wanted").get<std::size_t>();
                  group.begun = from.at("begun").get<std::size_t>();
                  for (const auto& end : from.at("ends")) group.ends.push_back(trial_end_from(end));
                }
                std::map<TrialId, TrialId> group_of;
                for (const auto& each : json.at("running"))
                  group_of[each.at(0).get<TrialId>()] = each.at(1).get<TrialId>();
                const auto begun = json.at("begun").get<TrialId>();
                const auto given = json.at("given").get<std::uint64_t>();
                search_->load(dump(json.at("search")));
                groups_ = std::move(groups);
                group_of_ = std::move(group_of);
                groups_begun_ = begun;
                given_ = given;
              });
}

class BatchedSearcher final : public Searcher {
 public:
  BatchedSearcher(const SearcherFactory& searcher, const SearchSetup& setup, std::size_t size)
      : batch_{size}, search_{made(searcher, setup)} {}

  Suggestion suggest(TrialId trial) override {
    if (begun_ == batch_) return Later{};
    auto suggestion = search_->suggest(trial);
    if (std::holds_alternative<Configuration>(suggestion)) {
      ++begun_;
      running_.push_back(trial);
    }
    return suggestion;
  }
  void give(TrialId trial, const Configuration& configuration) override {
    search_->give(trial, configuration);
  }
  void on_report(TrialId trial, std::int64_t t, double value) override {
    search_->on_report(trial, t, value);
  }
  void on_end(TrialId trial, const TrialEnd& end) override {
    search_->on_end(trial, end);
    std::erase(running_, trial);
    if (begun_ == batch_ && running_.empty()) begun_ = 0;
  }
  std::optional<std::uint64_t> size() const override { return search_->size(); }
  bool waits_for_ends() const override { return true; }
  std::uint64_t least_trials() const override { return search_->least_trials(); }
  std::string save() const override {
    return dump({{"searcher", "batched"},
                 {"batch", batch_},
                 {"begun", begun_},
                 {"running", running_},
                 {"search", parse(search_->save(), "a searcher's state")}});
  }
  void load(std::string_view saved) override {
    load_search(saved, {{"searcher", "batched"}, {"batch", batch_}}, [&](const Json& json) {
      auto running = json.at("running").get<std::vector<TrialId>>();
      const auto begun = json.at("begun").get<std::size_t>();
      search_->load(dump(json.at("search")));
      running_ = std::move(running);
      begun_ = begun;
    });
  }

 private:
  std::size_t batch_;
  std::unique_ptr<Searcher> search_;
  std::size_t begun_ = 0;  // of the batch
  std::vector<TrialId> running_ = {};
};

}  // namespace

SearcherFactory repeated(SearcherFactory searcher, std::size_t times) {
  if (times < 1) throw std::invalid_argument("tune::repeated: .times is 0, at least 1");
  return [searcher = std::move(searcher), times](const SearchSetup& setup) {
    return std::make_unique<RepeatedSearcher>(searcher, setup, times);
  };
}

SearcherFactory batched(SearcherFactory searcher, std::size_t size) {
  if (size < 1) throw std::invalid_argument("tune::batched: .size is 0, at least 1");
  return [searcher = std::move(searcher), size](const SearchSetup& setup) {
    return std::make_unique<BatchedSearcher>(searcher, setup, size);
  };
}

}  // namespace troupe::tune
