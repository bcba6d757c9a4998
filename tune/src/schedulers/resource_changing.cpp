#include <troupe/tune/schedulers/resource_changing.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "schedulers/pause_at_rung.hpp"
#include "schedulers/saved_state.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr auto* kWhere = "tune::resource_changing: ";

void check(const ResourceChangingOptions& options) {
  const auto& [total, first, most, factor] = options;
  if (first < 1 || total < first) {
    throw std::invalid_argument(
        fmt::format("{}.first is {} and .total {}; 1 <= first <= total, the ranks that the cluster "
                    "has room for",
                    kWhere, first, total));
  }
  if (most != 0 && most < first)
    throw std::invalid_argument(
        fmt::format("{}.most is {}, at least .first ({}) or 0", kWhere, most, first));
  if (!(factor > 1))
    throw std::invalid_argument(fmt::format("{}.factor is {}, more than 1", kWhere, factor));
}

Json json_of(const std::map<TrialId, int>& counts) {
  auto json = Json::array();
  for (const auto& [trial, workers] : counts) json.push_back({trial, workers});
  return json;
}

std::map<TrialId, int> counts_from(const Json& json) {
  std::map<TrialId, int> counts;
  for (const auto& each : json) counts[each.at(0).get<TrialId>()] = each.at(1).get<int>();
  return counts;
}

}  // namespace

ResourceChanging::ResourceChanging(std::unique_ptr<TrialScheduler> base,
                                   ResourceChangingOptions options)
    : base_{std::move(base)}, options_{options} {
  check(options_);
  if (base_->needs().own_search) {
    throw std::invalid_argument(
        std::string(kWhere) +
        "the scheduler inside changes configurations as trials run, and its trials keep their "
        "size; take another one");
  }
}

int ResourceChanging::size_of(const Trial& trial) const {
  return trial.workers > 0 ? trial.workers : options_.first;
}

/// What the trial may have now; 0: nothing is shared yet.
int ResourceChanging::share_of(const Trial& trial, const Population& population) const {
  if (population.to_come > 0) return 0;
  int live = 0;
  for (const auto& each : population.trials) {
    if (each.over()) continue;
    ++live;
    const bool waits = each.status == Status::Paused && !growing_.contains(each.id);
    if (waits) return 0;
  }
  const auto most = options_.most == 0 ? options_.total : options_.most;
  const auto limit = limit_.find(trial.id);
  const auto below = limit == limit_.end() ? std::numeric_limits<int>::max() : limit->second / 2;
  const auto share = std::min({options_.total / std::max(live, 1), most, below});
  return share / options_.first * options_.first;
}

Decision ResourceChanging::on_report(const Trial& trial, const Population& population) {
  auto decision = base_->on_report(trial, population);
  const bool has_checkpoint = !trial.checkpoint.empty() && trial.checkpoint_t == trial.t;
  if (!std::holds_alternative<GoOn>(decision) || !has_checkpoint) return decision;
  const auto has = size_of(trial), share = share_of(trial, population);
  if (share < options_.factor * has) return decision;
  growing_[trial.id] = share;
  const auto live =
      std::ranges::count_if(population.trials, [](const Trial& each) { return !each.over(); });
  return Pause{fmt::format("grows from {} to {} workers, which are free: {} for {}", has, share,
                           options_.total, counted(static_cast<std::size_t>(live), "trial")),
               rung_of(decision),
               {}};
}

void ResourceChanging::on_end(TrialId trial, const Population& population) {
  growing_.erase(trial);
  grown_.erase(trial);
  limit_.erase(trial);
  base_->on_end(trial, population);
}

void ResourceChanging::on_failure(TrialId trial, const Population& population) {
  growing_.erase(trial);
  const bool has_lost_it = population.trials[trial].workers == 0;
  if (const auto at = grown_.find(trial); at != grown_.end() && has_lost_it) {
    limit_[trial] = at->second;
    grown_.erase(at);
  }
  base_->on_failure(trial, population);
}

Turn ResourceChanging::on_place(const Population& population) {
  for (auto at = growing_.begin(); at != growing_.end(); ++at) {
    const auto [trial, workers] = *at;
    if (!is_paused(population, trial)) continue;
    growing_.erase(at);
    grown_[trial] = workers;
    return Resume{.trial = trial,
                  .workers = workers,
                  .why = fmt::format("goes on with {}",
                                     counted(static_cast<std::size_t>(workers), "worker"))};
  }
  return base_->on_place(population);
}

std::optional<Exploit> ResourceChanging::on_checkpoint_gone(const Trial& trial,
                                                            const std::string& gone,
                                                            const Population& population) {
  return base_->on_checkpoint_gone(trial, gone, population);
}

SchedulerNeeds ResourceChanging::needs() const {
  auto needs = base_->needs();
  needs.checkpoints = true;
  needs.counts_trials = true;
  needs.workers = options_.first;
  return needs;
}

std::string ResourceChanging::save() const {
  return dump({{"scheduler", "resource changing"},
               {"total", options_.total},
               {"first", options_.first},
               {"most", options_.most},
               {"factor", options_.factor},
               {"growing", json_of(growing_)},
               {"grown", json_of(grown_)},
               {"limit", json_of(limit_)},
               {"base", parse(base_->save(), "a scheduler's state")}});
}

void ResourceChanging::load(std::string_view saved) {
  try {
    const auto json = parse(saved, "a scheduler's state");
    check_same_scheduler(json, parse(save(), "a scheduler's state"),
                         {"scheduler", "total", "first", "most", "factor"});
    auto growing = counts_from(json.at("growing"));
    auto grown = counts_from(json.at("grown"));
    auto limit = counts_from(json.at("limit"));
    base_->load(dump(json.at("base")));
    growing_ = std::move(growing);
    grown_ = std::move(grown);
    limit_ = std::move(limit);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a state of resource_changing: {}", broken.what()));
  }
}

SchedulerFactory resource_changing(SchedulerFactory base, ResourceChangingOptions options) {
  check(options);
  if (!base) base = fifo();
  return [base, options](const Objective& objective, std::uint64_t seed) {
    return std::make_unique<ResourceChanging>(base(objective, seed), options);
  };
}

}  // namespace troupe::tune
