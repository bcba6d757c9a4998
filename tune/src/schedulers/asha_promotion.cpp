#include <troupe/tune/schedulers/asha_promotion.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "schedulers/pause_at_rung.hpp"
#include "schedulers/rungs.hpp"
#include "schedulers/saved_state.hpp"
#include "text/format.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();  // a negated score

}  // namespace

AshaPromotion::AshaPromotion(AshaOptions options, Objective objective, std::uint64_t seed)
    : options_{options}, objective_{std::move(objective)}, seed_{seed} {
  check(options);
  for (auto times : bracket_times(options)) {
    times.push_back(options.max_t);
    auto& rungs = brackets_.emplace_back();
    for (const auto t : times) rungs.push_back({.t = t});
  }
  for (std::size_t bracket = 0; bracket < brackets_.size(); ++bracket) {
    for (std::size_t rung = 0; rung < brackets_[bracket].size(); ++rung)
      highest_first_.emplace_back(bracket, rung);
  }
  std::ranges::stable_sort(highest_first_, std::greater{},
                           [&](const auto& at) { return brackets_[at.first][at.second].t; });
}

std::vector<AshaPromotion::Rung>& AshaPromotion::rungs_of(TrialId trial) {
  return brackets_[drawn_bracket(brackets_.size(), seed_, trial)];
}
const std::vector<AshaPromotion::Rung>& AshaPromotion::rungs_of(TrialId trial) const {
  return brackets_[drawn_bracket(brackets_.size(), seed_, trial)];
}

// ---- who is promoted ----------------------------------------------------------------------------

void AshaPromotion::enter(Rung& rung, TrialId trial, double score, bool waits) {
  const Entry entry{-score, trial};
  rung.entered.insert(std::ranges::upper_bound(rung.entered, entry), entry);
  if (!std::isfinite(score)) {
    ++rung.not_finite;
  } else if (waits) {
    rung.waiting.insert(entry);
  }
}

/// With the report that it has, the trial has come to the next rung too.
bool AshaPromotion::has_come_behind(const Place& place) const {
  const auto& rungs = brackets_[place.bracket];
  return place.rung + 1 < rungs.size() &&
         trials_.at(place.entry.second).t >= rungs[place.rung + 1].t;
}

/// -> where the trial is to train on from: behind all rungs that it has passed with the report that it has.
AshaPromotion::Place AshaPromotion::promote(Place place) {
  auto& rungs = brackets_[place.bracket];
  auto& progress = trials_.at(place.entry.second);
  while (true) {
    rungs[place.rung].waiting.erase(place.entry);
    progress.allowed = place.rung + 2;
    if (!has_come_behind(place)) return place;
    ++place.rung;
    ++progress.reached;
    enter(rungs[place.rung], place.entry.second, -place.entry.first, /*waits=*/false);
  }
}

/// Who is among the best of a rung, and has come to the next one, enters that; the highest rung first.
void AshaPromotion::promote_without_training() {
  const auto has_come = [&](std::size_t bracket, std::size_t rung) {
    return best_of(bracket, rung, [&, bracket, rung](TrialId trial) {
      return has_come_behind({bracket, rung, {0, trial}});
    });
  };
  for (std::size_t at = 0; at < highest_first_.size();) {
    const auto& [bracket, index] = highest_first_[at];
    const auto place = has_come(bracket, index);
    if (!place) {
      ++at;
      continue;
    }
    auto& rungs = brackets_[bracket];
    rungs[index].waiting.erase(place->entry);
    auto& progress = trials_.at(place->entry.second);
    progress.allowed = index + 2;
    ++progress.reached;
    enter(rungs[index + 1], place->entry.second, -place->entry.first, index + 2 < rungs.size());
    at = 0;  // there may be one to promote in the rung above now
  }
}

std::size_t AshaPromotion::promotable(const Rung& rung) const {
  return rung.entered.size() / static_cast<std::size_t>(options_.eta);
}

std::optional<AshaPromotion::Place> AshaPromotion::best_of(std::size_t bracket, std::size_t index,
                                                           const IsReady& is_ready) const {
  const auto& rung = brackets_[bracket][index];
  const auto among = promotable(rung);
  for (const auto& entry : rung.waiting) {
    const auto rank = std::ranges::lower_bound(rung.entered, entry) - rung.entered.begin();
    if (static_cast<std::size_t>(rank) >= among) break;
    if (is_ready(entry.second)) return Place{bracket, index, entry};
  }
  return std::nullopt;
}

std::optional<AshaPromotion::Place> AshaPromotion::next_promotion(const IsReady& is_ready) const {
  for (const auto& [bracket, rung] : highest_first_) {
    if (auto place = best_of(bracket, rung, is_ready)) return place;
  }
  return std::nullopt;
}

/// Where nothing runs any more: who goes on so that one is trained to max_t.
std::optional<AshaPromotion::Place> AshaPromotion::last_promotion(
    const Population& population) const {
  const auto is_trained = [](const std::vector<Rung>& rungs) {
    return rungs.back().entered.size() > rungs.back().not_finite;
  };
  const auto runs = [](const Trial& trial) { return trial.in_flight; };
  if (has_trained_ || std::ranges::any_of(population.trials, runs) ||
      std::ranges::any_of(brackets_, is_trained))
    return std::nullopt;
  for (const auto& [bracket, rung] : highest_first_) {
    for (const auto& entry : brackets_[bracket][rung].waiting) {
      if (is_paused(population, entry.second)) return Place{bracket, rung, entry};
    }
  }
  return std::nullopt;
}

Turn AshaPromotion::on_place(const Population& population) {
  auto place = next_promotion([&](TrialId trial) { return is_paused(population, trial); });
  if (!place && population.to_come > 0) return Begin{};
  const bool is_last = !place;
  if (is_last) place = last_promotion(population);
  if (!place) return Over{};
  place = promote(*place);
  return Resume{.trial = place->entry.second,
                .why = fmt::format("{} {}: {}{}", is_last ? "goes on from" : "promoted from",
                                   named(place->bracket, place->rung), standing(*place),
                                   is_last ? fmt::format("; nothing else runs, and nobody has "
                                                         "trained to max_t={}",
                                                         options_.max_t)
                                           : ""),
                .rung = static_cast<int>(place->rung)};
}

// ---- reasons ------------------------------------------------------------------------------------

std::string AshaPromotion::named(std::size_t bracket, std::size_t rung) const {
  const auto of = brackets_.size() > 1 ? fmt::format(" of bracket {}", bracket) : "";
  return fmt::format("rung {} (t={}){}", rung, brackets_[bracket][rung].t, of);
}

/// "loss 0.3 is place 1 of 6, the best 2 go on".
std::string AshaPromotion::standing(const Place& place) const {
  const auto& [bracket, index, entry] = place;
  const auto& rung = brackets_[bracket][index];
  const auto rank = std::ranges::lower_bound(rung.entered, entry) - rung.entered.begin();
  const auto value = objective_.mode == Mode::Max ? -entry.first : entry.first;
  return fmt::format("{} {} is place {} of {}, the best {} go on", objective_.metric,
                     std::isfinite(value) ? short_number(value) : "(not finite)", rank + 1,
                     rung.entered.size(), promotable(rung));
}

// ---- reports ------------------------------------------------------------------------------------

Decision AshaPromotion::at_rung(const Trial& trial, std::size_t index,
                                const Population& population) {
  const auto bracket = drawn_bracket(brackets_.size(), seed_, trial.id);
  const auto value = *objective_.value_in(trial.last);
  const Place own{bracket, index, {-objective_.score(value), trial.id}};
  const auto number = static_cast<int>(index);
  const auto place = next_promotion(
      [&](TrialId other) { return other == trial.id || is_paused(population, other); });
  if (place && place->entry.second == trial.id) {
    promote(*place);
    return GoOn{
        fmt::format("promoted from {}: {}", named(place->bracket, place->rung), standing(*place)),
        number,
        {}};
  }
  return pause_at_rung(trial, number,
                       fmt::format("paused at {}: {}", named(bracket, index), standing(own)),
                       "asha", told_of_checkpoints_);
}

Decision AshaPromotion::on_report(const Trial& trial, const Population& population) {
  auto& progress = trials_[trial.id];
  auto& rungs = rungs_of(trial.id);
  const auto value = objective_.value_in(trial.last);
  if (value) progress.last = objective_.score(*value);
  const auto next = progress.reached;
  const bool comes =
      value && next < std::min(progress.allowed, rungs.size()) && rungs[next].t <= trial.t;
  if (comes) {
    enter(rungs[next], trial.id, progress.last, next + 1 < rungs.size());
    ++progress.reached;
    progress.t = trial.t;
    promote_without_training();
  }
  if (trial.t >= options_.max_t) {
    has_trained_ = has_trained_ || (value && std::isfinite(*value));
    return Finish{fmt::format("trained to max_t={}", options_.max_t)};
  }
  return comes ? at_rung(trial, progress.reached - 1, population) : GoOn{};
}

/// A trial that is over before its last rung counts in the one that it was on the way to.
void AshaPromotion::on_end(TrialId id, const Population& population) {
  auto& progress = trials_[id];
  progress.is_over = true;
  if (id >= population.trials.size()) return;
  const auto& trial = population.trials[id];
  auto& rungs = rungs_of(id);
  const bool was_stopped = trial.status != Status::Terminated && trial.status != Status::Errored;
  // Who ended at its rung, before it was promoted from there, was on the way to none.
  if (was_stopped || progress.reached == std::min(progress.allowed, rungs.size())) return;
  enter(rungs[progress.reached], id, trial.status == Status::Terminated ? progress.last : -kWorst,
        false);
  ++progress.reached;
  promote_without_training();
}

std::string AshaPromotion::why_left(TrialId trial) const {
  const auto at = trials_.find(trial);
  if (at == trials_.end() || at->second.is_over || at->second.reached == 0) return "";
  const auto index = at->second.reached - 1;
  const auto& rung = rungs_of(trial)[index];
  const auto place =
      std::ranges::find(rung.entered, trial, &Entry::second) - rung.entered.begin() + 1;
  const auto bracket = drawn_bracket(brackets_.size(), seed_, trial);
  return fmt::format("not promoted from {}: place {} of {}, and the best {} go on",
                     named(bracket, index), place, rung.entered.size(), promotable(rung));
}

std::vector<RungSummary> AshaPromotion::rungs() const {
  std::vector<RungSummary> all;
  for (std::size_t bracket = 0; bracket < brackets_.size(); ++bracket) {
    for (std::size_t index = 0; index < brackets_[bracket].size(); ++index) {
      const auto& rung = brackets_[bracket][index];
      RungSummary summary{static_cast<int>(bracket), static_cast<int>(index), rung.t,
                          rung.entered.size(),       rung.waiting.size(),     rung.not_finite};
      if (const auto among = promotable(rung); among > 0 && index + 1 < brackets_[bracket].size()) {
        const auto score = -rung.entered[among - 1].first;
        summary.cutoff = objective_.mode == Mode::Max ? score : -score;
      }
      all.push_back(summary);
    }
  }
  return all;
}

// ---- state --------------------------------------------------------------------------------------

std::string AshaPromotion::save() const {
  Json brackets = Json::array();
  for (const auto& rungs : brackets_) {
    auto& saved = brackets.emplace_back(Json::array());
    for (const auto& rung : rungs) {
      auto entered = Json::array();
      for (const auto& entry : rung.entered)
        entered.push_back({entry.second, to_json(entry.first), rung.waiting.contains(entry)});
      saved.push_back({{"t", rung.t}, {"entered", std::move(entered)}});
    }
  }
  Json trials = Json::array();
  for (const auto& [trial, at] : trials_) {
    trials.push_back(
        Json::array({trial, at.reached, at.allowed, at.t, to_json(at.last), at.is_over}));
  }
  return dump({{"scheduler", "asha promotion"},
               {"max_t", options_.max_t},
               {"eta", options_.eta},
               {"grace", options_.grace},
               {"count", options_.brackets},
               {"metric", objective_.metric},
               {"mode", objective_.mode == Mode::Max ? "max" : "min"},
               {"seed", seed_},
               {"told_of_checkpoints", told_of_checkpoints_},
               {"has_trained", has_trained_},
               {"brackets", brackets},
               {"trials", trials}});
}

void AshaPromotion::load(std::string_view saved) {
  try {
    take_up(saved);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a state of asha: {}", broken.what()));
  }
}

void AshaPromotion::take_up(std::string_view saved) {
  const auto json = parse(saved, "a scheduler's state");
  AshaPromotion fresh(options_, objective_, seed_);
  check_same_scheduler(json, parse(fresh.save(), "a scheduler's state"),
                       {"scheduler", "max_t", "eta", "grace", "count", "metric", "mode", "seed"});
  for (std::size_t b = 0; b < fresh.brackets_.size(); ++b) {
    for (std::size_t r = 0; r < fresh.brackets_[b].size(); ++r) {
      auto& rung = fresh.brackets_[b][r];
      for (const auto& each : json.at("brackets").at(b).at(r).at("entered"))
        fresh.enter(rung, each.at(0).get<TrialId>(), -number_from(each.at(1)),
                    each.at(2).get<bool>());
    }
  }
  for (const auto& each : json.at("trials")) {
    fresh.trials_[each.at(0).get<TrialId>()] = {
        each.at(1).get<std::size_t>(), each.at(2).get<std::size_t>(),
        each.at(3).get<std::int64_t>(), number_from(each.at(4)), each.at(5).get<bool>()};
  }
  fresh.has_trained_ = json.at("has_trained").get<bool>();
  fresh.told_of_checkpoints_ = json.at("told_of_checkpoints").get<bool>();
  *this = std::move(fresh);
}

}  // namespace troupe::tune
