#include <troupe/tune/schedulers/hyperband.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "schedulers/pause_at_rung.hpp"
#include "schedulers/saved_state.hpp"
#include "text/format.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace {

std::vector<HyperBand::Plan> planned_band(const HyperBandOptions& options) {
  if (options.max_t < 1 || options.eta < 2)
    throw std::invalid_argument(fmt::format(
        "hyperband needs max_t >= 1 and eta >= 2: max_t={}, eta={}", options.max_t, options.eta));
  // Powers of eta in integers: a quotient of logarithms loses the last one to rounding.
  std::vector<std::int64_t> powers{1};
  while (powers.back() <= options.max_t / options.eta)
    powers.push_back(powers.back() * options.eta);
  const auto brackets = static_cast<std::int64_t>(powers.size());
  std::vector<HyperBand::Plan> band;
  for (auto s = brackets - 1; s >= 0; --s) {
    auto& plan = band.emplace_back();
    const auto power = powers[static_cast<std::size_t>(s)];
    const auto first = (brackets * power + s) / (s + 1);  // rounded up
    for (std::int64_t i = 0; i <= s; ++i) {
      plan.t.push_back(options.max_t / powers[static_cast<std::size_t>(s - i)]);
      plan.trials.push_back(static_cast<std::size_t>(first / powers[static_cast<std::size_t>(i)]));
    }
  }
  return band;
}

}  // namespace

HyperBand::HyperBand(HyperBandOptions options, Objective objective)
    : options_{options}, objective_{std::move(objective)}, band_{planned_band(options)} {
  TrialId first = 0;
  for (const auto& plan : band_) {
    begin_.push_back(first);
    first += plan.trials.front();
  }
  begin_.push_back(first);
}

HyperBand::Place HyperBand::place_of(TrialId trial) const {
  const auto within = trial % begin_.back();
  const auto after = std::ranges::upper_bound(begin_, within) - begin_.begin();
  const auto plan = static_cast<std::size_t>(after) - 1;
  return {trial / begin_.back() * band_.size() + plan, plan};
}

HyperBand::Bracket& HyperBand::bracket_of(TrialId trial) {
  const auto place = place_of(trial);
  auto& bracket = brackets_[place.bracket];
  if (bracket.rungs.empty()) bracket.rungs.resize(band_[place.plan].t.size());
  return bracket;
}

/// How many of its trials have begun, of all that will: those to come may fill it.
std::size_t HyperBand::begun_in(std::size_t bracket, const Population& population) const {
  const auto plan = bracket % band_.size();
  const auto first = bracket / band_.size() * begin_.back() + begin_[plan];
  const auto most = band_[plan].trials.front();
  const auto all = population.trials.size();
  return all <= first ? 0 : std::min<std::size_t>(all - first, most);
}

void HyperBand::enter(Rung& rung, TrialId trial, double score) const {
  const Entry entry{-score, trial};
  rung.entered.insert(std::ranges::upper_bound(rung.entered, entry), entry);
  if (!std::isfinite(score)) ++rung.not_finite;
}

// ---- who goes on --------------------------------------------------------------------------------

/// Where all are there that will come: chooses those that go on.
void HyperBand::judge(std::size_t number, std::size_t index, const Population& population) {
  auto& bracket = brackets_.at(number);
  auto& rung = bracket.rungs[index];
  const auto& plan = plan_of(number);
  if (rung.is_judged || index + 1 == plan.t.size() || rung.entered.empty()) return;
  if (index == 0) {
    const auto begun = begun_in(number, population);
    const bool is_full = begun == plan.trials.front() || population.to_come == 0;
    if (!is_full || rung.entered.size() < begun) return;
  } else {
    const auto& before = bracket.rungs[index - 1];
    if (!before.is_judged || rung.entered.size() < before.chosen) return;
  }
  rung.is_judged = true;
  const auto keep =
      std::max<std::size_t>(rung.entered.size() / static_cast<std::size_t>(options_.eta), 1);
  for (std::size_t i = 0; i < keep; ++i) {
    const auto& [score, trial] = rung.entered[i];
    // Who is over, or has no value, has no place to give away.
    if (std::isfinite(score) && bracket.reached.contains(trial)) rung.goes_on.push_back(trial);
  }
  rung.chosen = rung.goes_on.size();
}

void HyperBand::judge_all(std::size_t bracket, const Population& population) {
  for (std::size_t rung = 0; rung < plan_of(bracket).t.size(); ++rung)
    judge(bracket, rung, population);
}

Turn HyperBand::on_place(const Population& population) {
  // What is to come may have come to its end since the last report.
  for (auto& [number, bracket] : brackets_) judge_all(number, population);
  for (auto& [number, bracket] : brackets_) {
    for (auto rung = bracket.rungs.rbegin(); rung != bracket.rungs.rend(); ++rung) {
      const auto ready = std::ranges::find_if(
          rung->goes_on, [&](TrialId trial) { return is_paused(population, trial); });
      if (ready == rung->goes_on.end()) continue;
      const auto trial = *ready;
      rung->goes_on.erase(ready);
      return Resume{trial, std::nullopt};
    }
  }
  if (population.to_come > 0) return Begin{};
  return Over{};
}

// ---- reports ------------------------------------------------------------------------------------

Decision HyperBand::at_rung(const Trial& trial, std::size_t index, const Population& population) {
  const auto number = place_of(trial.id).bracket;
  judge(number, index, population);
  auto& rung = brackets_.at(number).rungs[index];
  const auto t = plan_of(number).t[index];
  const auto value = short_number(*objective_.value_in(trial.last));
  const auto named = static_cast<int>(index);
  const auto its = std::ranges::find(rung.goes_on, trial.id);
  if (its != rung.goes_on.end()) {
    rung.goes_on.erase(its);
    return GoOn{
        fmt::format("goes on from rung {} (t={}) of bracket {}: {} {} is among the best {} "
                    "of {}",
                    index, t, number, objective_.metric, value, rung.chosen, rung.entered.size()),
        named,
        {}};
  }
  return pause_at_rung(trial, named,
                       fmt::format("paused at rung {} (t={}) of bracket {}: {} {}", index, t,
                                   number, objective_.metric, value),
                       "hyperband", told_of_checkpoints_);
}

Decision HyperBand::on_report(const Trial& trial, const Population& population) {
  auto& bracket = bracket_of(trial.id);
  const auto& plan = band_[place_of(trial.id).plan];
  auto& reached = bracket.reached[trial.id];
  const auto value = objective_.value_in(trial.last);
  const auto before = reached;
  while (value && reached < plan.t.size() && plan.t[reached] <= trial.t) {
    enter(bracket.rungs[reached], trial.id, objective_.score(*value));
    ++reached;
  }
  if (trial.t >= options_.max_t) return Finish{fmt::format("trained to max_t={}", options_.max_t)};
  if (reached == before) return GoOn{};
  return at_rung(trial, reached - 1, population);
}

/// A trial that is over before its last rung counts in the one that it was on the way to.
void HyperBand::on_end(TrialId id, const Population& population) {
  if (id >= population.trials.size()) return;
  auto& bracket = bracket_of(id);
  const auto at = bracket.reached.find(id);
  const auto reached = at == bracket.reached.end() ? 0 : at->second;
  if (at != bracket.reached.end()) bracket.reached.erase(at);
  const auto& trial = population.trials[id];
  const bool was_stopped = trial.status != Status::Terminated && trial.status != Status::Errored;
  if (was_stopped || reached == bracket.rungs.size()) return;
  const auto value = objective_.value_in(trial.last);
  const bool counts = trial.status == Status::Terminated && value;
  enter(bracket.rungs[reached], id,
        counts ? objective_.score(*value) : -std::numeric_limits<double>::infinity());
  judge_all(place_of(id).bracket, population);
}

std::string HyperBand::why_left(TrialId trial) const {
  const auto place = place_of(trial);
  const auto found = brackets_.find(place.bracket);
  if (found == brackets_.end()) return "";
  const auto at = found->second.reached.find(trial);
  if (at == found->second.reached.end() || at->second == 0) return "";
  const auto index = at->second - 1;
  const auto& rung = found->second.rungs[index];
  const auto its = std::ranges::find(rung.entered, trial, &Entry::second) - rung.entered.begin();
  return fmt::format("left at rung {} (t={}) of bracket {}: place {} of {}, and the best {} go on",
                     index, band_[place.plan].t[index], place.bracket, its + 1, rung.entered.size(),
                     rung.chosen);
}

std::vector<RungSummary> HyperBand::rungs() const {
  std::vector<RungSummary> all;
  for (const auto& [number, bracket] : brackets_) {
    for (std::size_t index = 0; index < bracket.rungs.size(); ++index) {
      const auto& rung = bracket.rungs[index];
      const auto finite = rung.entered.size() - rung.not_finite;
      RungSummary summary{.bracket = static_cast<int>(number),
                          .rung = static_cast<int>(index),
                          .t = plan_of(number).t[index],
                          .reached = rung.entered.size(),
                          .stopped = rung.is_judged ? finite - rung.chosen : 0,
                          .not_finite = rung.not_finite};
      if (rung.chosen > 0) {
        const auto score = -rung.entered[rung.chosen - 1].first;
        summary.cutoff = objective_.mode == Mode::Max ? score : -score;
      }
      all.push_back(summary);
    }
  }
  return all;
}

// ---- state --------------------------------------------------------------------------------------

std::string HyperBand::save() const {
  Json brackets = Json::array();
  for (const auto& [number, bracket] : brackets_) {
    Json rungs = Json::array();
    for (const auto& rung : bracket.rungs) {
      auto entered = Json::array();
      for (const auto& entry : rung.entered)
        entered.push_back({entry.second, to_json(entry.first)});
      rungs.push_back({{"entered", std::move(entered)},
                       {"goes_on", rung.goes_on},
                       {"chosen", rung.chosen},
                       {"judged", rung.is_judged}});
    }
    Json reached = Json::array();
    for (const auto& [trial, count] : bracket.reached) reached.push_back(Json{trial, count});
    brackets.push_back(
        {{"bracket", number}, {"rungs", std::move(rungs)}, {"reached", std::move(reached)}});
  }
  return dump({{"scheduler", "hyperband"},
               {"max_t", options_.max_t},
               {"eta", options_.eta},
               {"metric", objective_.metric},
               {"mode", objective_.mode == Mode::Max ? "max" : "min"},
               {"told_of_checkpoints", told_of_checkpoints_},
               {"brackets", std::move(brackets)}});
}

void HyperBand::load(std::string_view saved) {
  try {
    take_up(saved);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a state of hyperband: {}", broken.what()));
  }
}

void HyperBand::take_up(std::string_view saved) {
  const auto json = parse(saved, "a scheduler's state");
  HyperBand fresh(options_, objective_);
  check_same_scheduler(json, parse(fresh.save(), "a scheduler's state"),
                       {"scheduler", "max_t", "eta", "metric", "mode"});
  for (const auto& from : json.at("brackets")) {
    const auto number = from.at("bracket").get<std::size_t>();
    auto& bracket = fresh.brackets_[number];
    bracket.rungs.resize(plan_of(number).t.size());
    for (std::size_t index = 0; index < bracket.rungs.size(); ++index) {
      auto& rung = bracket.rungs[index];
      const auto& saved_rung = from.at("rungs").at(index);
      for (const auto& each : saved_rung.at("entered"))
        fresh.enter(rung, each.at(0).get<TrialId>(), -number_from(each.at(1)));
      rung.goes_on = saved_rung.at("goes_on").get<std::vector<TrialId>>();
      rung.chosen = saved_rung.at("chosen").get<std::size_t>();
      rung.is_judged = saved_rung.at("judged").get<bool>();
    }
    for (const auto& each : from.at("reached"))
      bracket.reached[each.at(0).get<TrialId>()] = each.at(1).get<std::size_t>();
  }
  fresh.told_of_checkpoints_ = json.at("told_of_checkpoints").get<bool>();
  *this = std::move(fresh);
}

SchedulerFactory hyperband(HyperBandOptions options) {
  // Refuses bad options here, where they were written.
  [[maybe_unused]] const HyperBand refused(options, {});
  return [options](const Objective& objective, std::uint64_t) -> std::unique_ptr<TrialScheduler> {
    return std::make_unique<HyperBand>(options, objective);
  };
}

}  // namespace troupe::tune
