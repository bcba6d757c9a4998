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

constexpr std::int64_t kMostT = 1'000'000'000'000;

std::vector<HyperBand::Plan> planned_band(const HyperBandOptions& options) {
  if (options.max_t < 1 || options.max_t > kMostT || options.eta < 2)
    throw std::invalid_argument(
        fmt::format("hyperband needs max_t from 1 to {} and eta >= 2: max_t={}, eta={}", kMostT,
                    options.max_t, options.eta));
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

/// All are there that will come. `may_be_unfilled`: also where the search has no more for it.
bool HyperBand::is_complete(std::size_t number, const Bracket& bracket, std::size_t index,
                            const Population& population, bool may_be_unfilled) const {
  const auto& rung = bracket.rungs[index];
  const auto& plan = plan_of(number);
  if (index + 1 == plan.t.size() || rung.entered.empty()) return false;
  if (index > 0) {
    const auto& before = bracket.rungs[index - 1];
    return before.is_judged && rung.entered.size() >= before.chosen.size();
  }
  const auto begun = begun_in(number, population);
  const bool is_full = begun == plan.trials.front() || (may_be_unfilled && population.to_come == 0);
  return is_full && rung.entered.size() >= begun;
}

std::size_t HyperBand::kept_of(const Rung& rung) const {
  return std::max<std::size_t>(rung.entered.size() / static_cast<std::size_t>(options_.eta), 1);
}

/// With the report that it has: it needs no training for it.
bool HyperBand::has_come_to(std::size_t number, std::size_t index, const Progress& progress) const {
  return progress.t >= plan_of(number).t[index];
}

bool HyperBand::is_awaited(const Bracket& bracket, std::size_t index, TrialId trial) {
  return index == 0 || std::ranges::count(bracket.rungs[index - 1].chosen, trial) > 0;
}

/// Chooses of the best those that go on: who is over and has not come to the next rung, or has no value, has no place to
/// give away.
void HyperBand::judge(std::size_t number, Bracket& bracket, std::size_t index) const {
  auto& rung = bracket.rungs[index];
  rung.is_judged = true;
  rung.kept = kept_of(rung);
  for (std::size_t i = 0; i < rung.kept; ++i) {
    const auto [worst, trial] = rung.entered[i];
    auto& progress = bracket.trials.at(trial);
    const bool has_come = has_come_to(number, index + 1, progress);
    if (!std::isfinite(worst) || (progress.is_over && !has_come)) continue;
    rung.chosen.push_back(trial);
    if (has_come) {
      enter(bracket.rungs[index + 1], trial, -worst);
      ++progress.reached;
    } else {
      rung.goes_on.push_back(trial);
    }
  }
}

/// From the lowest on: the chosen ones may make the next one complete.
void HyperBand::judge_complete(std::size_t number, Bracket& bracket, const Population& population,
                               bool may_be_unfilled) const {
  for (std::size_t index = 0; index < bracket.rungs.size(); ++index) {
    if (bracket.rungs[index].is_judged) continue;
    if (!is_complete(number, bracket, index, population, may_be_unfilled)) return;
    judge(number, bracket, index);
  }
}

/// Takes the next one that is to train further out of the highest rung that has one.
std::optional<Resume> HyperBand::next_of(std::size_t number, Bracket& bracket,
                                         const Population& population) const {
  for (auto index = bracket.rungs.size(); index-- > 0;) {
    auto& goes_on = bracket.rungs[index].goes_on;
    const auto ready =
        std::ranges::find_if(goes_on, [&](TrialId trial) { return is_paused(population, trial); });
    if (ready == goes_on.end()) continue;
    Resume resume{.trial = *ready,
                  .why = why_chosen(number, bracket, index, *ready),
                  .rung = static_cast<int>(index)};
    goes_on.erase(ready);
    return resume;
  }
  return std::nullopt;
}

Turn HyperBand::on_place(const Population& population) {
  for (auto& [number, bracket] : brackets_) {
    const bool is_first_due =
        !bracket.rungs.front().is_judged && is_complete(number, bracket, 0, population, true);
    if (!is_first_due) {
      if (auto resume = next_of(number, bracket, population)) return *std::move(resume);
      continue;
    }
    // Of a bracket that the search does not fill. Nothing changes unless a trial goes on.
    auto judged = bracket;
    judge_complete(number, judged, population, true);
    auto resume = next_of(number, judged, population);
    if (!resume) continue;
    bracket = std::move(judged);
    return *std::move(resume);
  }
  if (population.to_come > 0) return Begin{};
  return Over{};
}

std::string HyperBand::why_chosen(std::size_t number, const Bracket& bracket, std::size_t index,
                                  TrialId trial) const {
  const auto& rung = bracket.rungs[index];
  const auto entry = std::ranges::find(rung.entered, trial, &Entry::second);
  const auto value = objective_.mode == Mode::Max ? -entry->first : entry->first;
  return fmt::format("goes on from rung {} (t={}) of bracket {}: {} {} is among the best {} of {}",
                     index, plan_of(number).t[index], number, objective_.metric,
                     short_number(value), rung.kept, rung.entered.size());
}

// ---- reports ------------------------------------------------------------------------------------

/// Of a trial that has come to a rung: whether it trains on in its place.
Decision HyperBand::at_rung(const Trial& trial, Bracket& bracket) {
  const auto number = place_of(trial.id).bracket;
  const auto index = bracket.trials.at(trial.id).reached - 1;
  auto& rung = bracket.rungs[index];
  const auto named = static_cast<int>(index);
  const auto its = std::ranges::find(rung.goes_on, trial.id);
  if (its != rung.goes_on.end()) {
    rung.goes_on.erase(its);
    return GoOn{why_chosen(number, bracket, index, trial.id), named, {}};
  }
  const auto value = *objective_.value_in(trial.last);
  const auto place =
      std::ranges::find(rung.entered, trial.id, &Entry::second) - rung.entered.begin();
  return pause_at_rung(
      trial, named,
      fmt::format(
          "paused at rung {} (t={}) of bracket {}: {} {} is place {} of the {} that have come",
          index, plan_of(number).t[index], number, objective_.metric, short_number(value),
          place + 1, rung.entered.size()),
      "hyperband", told_of_checkpoints_);
}

Decision HyperBand::on_report(const Trial& trial, const Population& population) {
  auto& bracket = bracket_of(trial.id);
  const auto number = place_of(trial.id).bracket;
  auto& progress = bracket.trials[trial.id];
  const auto value = objective_.value_in(trial.last);
  if (value) progress.last = objective_.score(*value);
  const auto next = progress.reached;
  const bool comes = value && next < bracket.rungs.size() && plan_of(number).t[next] <= trial.t &&
                     is_awaited(bracket, next, trial.id);
  if (comes) {
    enter(bracket.rungs[next], trial.id, progress.last);
    ++progress.reached;
    progress.t = trial.t;
    judge_complete(number, bracket, population, false);
  }
  if (trial.t >= options_.max_t) return Finish{fmt::format("trained to max_t={}", options_.max_t)};
  return comes ? at_rung(trial, bracket) : GoOn{};
}

/// A trial that is over before its last rung counts in the one that it was on the way to.
void HyperBand::on_end(TrialId id, const Population& population) {
  if (id >= population.trials.size()) return;
  const auto number = place_of(id).bracket;
  auto& bracket = bracket_of(id);
  auto& progress = bracket.trials[id];
  progress.is_over = true;
  const auto& trial = population.trials[id];
  const bool was_stopped = trial.status != Status::Terminated && trial.status != Status::Errored;
  if (was_stopped || progress.reached == bracket.rungs.size()) return;
  // Who ended at its rung, before it was chosen there, is awaited nowhere.
  if (!is_awaited(bracket, progress.reached, id)) return;
  const auto worst = -std::numeric_limits<double>::infinity();
  enter(bracket.rungs[progress.reached], id,
        trial.status == Status::Terminated ? progress.last : worst);
  ++progress.reached;
  judge_complete(number, bracket, population, false);
}

std::string HyperBand::why_left(TrialId trial) const {
  const auto place = place_of(trial);
  const auto found = brackets_.find(place.bracket);
  if (found == brackets_.end()) return "";
  const auto at = found->second.trials.find(trial);
  if (at == found->second.trials.end() || at->second.is_over || at->second.reached == 0) return "";
  const auto index = at->second.reached - 1;
  const auto& rung = found->second.rungs[index];
  const auto its = std::ranges::find(rung.entered, trial, &Entry::second) - rung.entered.begin();
  return fmt::format("left at rung {} (t={}) of bracket {}: place {} of {}, and the best {} go on",
                     index, band_[place.plan].t[index], place.bracket, its + 1, rung.entered.size(),
                     rung.is_judged ? rung.kept : kept_of(rung));
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
                          .stopped = rung.is_judged ? finite - rung.chosen.size() : 0,
                          .not_finite = rung.not_finite};
      if (rung.is_judged && std::isfinite(rung.entered[rung.kept - 1].first)) {
        const auto score = -rung.entered[rung.kept - 1].first;
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
                       {"kept", rung.kept},
                       {"judged", rung.is_judged}});
    }
    Json trials = Json::array();
    for (const auto& [trial, at] : bracket.trials)
      trials.push_back(Json::array({trial, at.reached, at.t, to_json(at.last), at.is_over}));
    brackets.push_back(
        {{"bracket", number}, {"rungs", std::move(rungs)}, {"trials", std::move(trials)}});
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
      rung.chosen = saved_rung.at("chosen").get<std::vector<TrialId>>();
      rung.kept = saved_rung.at("kept").get<std::size_t>();
      rung.is_judged = saved_rung.at("judged").get<bool>();
    }
    for (const auto& each : from.at("trials"))
      bracket.trials[each.at(0).get<TrialId>()] = {each.at(1).get<std::size_t>(),
                                                   each.at(2).get<std::int64_t>(),
                                                   number_from(each.at(3)), each.at(4).get<bool>()};
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
