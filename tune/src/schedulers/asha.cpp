#include <troupe/tune/schedulers/asha.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/tune/schedulers/asha_promotion.hpp>

#include "schedulers/rungs.hpp"
#include "schedulers/saved_state.hpp"
#include "text/json.hpp"

namespace troupe::tune {
namespace {

double value_of(double score, Mode mode) { return mode == Mode::Max ? score : -score; }

}  // namespace

Asha::Asha(AshaOptions options, Objective objective, std::uint64_t seed)
    : options_{options}, objective_{std::move(objective)}, seed_{seed} {
  check(options);
  for (const auto& times : bracket_times(options)) {
    auto& rungs = brackets_.emplace_back();
    for (const auto t : times) rungs.push_back({.t = t});
  }
}

Asha::Progress& Asha::progress_of(TrialId trial) {
  const auto [at, is_new] = running_.try_emplace(trial);
  if (is_new) at->second.bracket = drawn_bracket(brackets_.size(), seed_, trial);
  return at->second;
}

std::optional<double> Asha::cutoff(const Rung& rung) const {
  if (rung.scores.empty()) return std::nullopt;
  const auto position = static_cast<double>(rung.scores.size() - 1) * (1.0 - 1.0 / options_.eta);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, rung.scores.size() - 1);
  const auto part = position - static_cast<double>(below);
  const auto low = rung.scores[below];
  if (part == 0) return low;
  if (!std::isfinite(low)) return rung.scores[above];
  return low + part * (rung.scores[above] - low);
}

std::string Asha::named(std::size_t bracket, std::size_t rung) const {
  const auto of = brackets_.size() > 1 ? fmt::format(" of bracket {}", bracket) : "";
  return fmt::format("rung {} (t={}){}", rung, brackets_[bracket][rung].t, of);
}

void Asha::enter(Rung& rung, double score) {
  rung.scores.insert(std::ranges::upper_bound(rung.scores, score), score);
  if (!std::isfinite(score)) ++rung.not_finite;
}

Decision Asha::judge(std::size_t bracket, std::size_t index, double value) {
  auto& rung = brackets_[bracket][index];
  const auto score = objective_.score(value);
  const auto needed = cutoff(rung);
  const auto before = rung.scores.size();
  enter(rung, score);

  const auto place = named(bracket, index);
  const auto number = static_cast<int>(index);
  if (!std::isfinite(value)) {
    return Stop{fmt::format("stopped at {}: {} is {}", place, objective_.metric, to_string(value)),
                number};
  }
  if (!needed) {
    return GoOn{
        fmt::format("passed {}: {} {:.6g} is the first there", place, objective_.metric, value),
        number,
        {}};
  }
  const auto* side = objective_.mode == Mode::Max ? "below" : "above";
  const auto of = before == 1 ? std::string("the value of the only trial before it")
                              : fmt::format("the best 1/{} of {}", options_.eta, before);
  const auto against =
      fmt::format("{} the cutoff {:.6g}, {}", side, value_of(*needed, objective_.mode), of);
  if (score < *needed) {
    ++rung.stopped;
    return Stop{
        fmt::format("stopped at {}: {} {:.6g} is {}", place, objective_.metric, value, against),
        number};
  }
  return GoOn{
      fmt::format("passed {}: {} {:.6g} is not {}", place, objective_.metric, value, against),
      number,
      {}};
}

/// In one rung after the other, as far as the trial comes with this value.
Decision Asha::judge_passed(Progress& progress, std::int64_t t, double value) {
  const auto& rungs = brackets_[progress.bracket];
  Decision decision;
  std::string passed;
  while (static_cast<std::size_t>(progress.judged + 1) < rungs.size()) {
    const auto next = static_cast<std::size_t>(progress.judged + 1);
    if (rungs[next].t > t) break;
    progress.judged = static_cast<int>(next);
    decision = judge(progress.bracket, next, value);
    auto* go_on = std::get_if<GoOn>(&decision);
    if (!go_on) break;
    passed += (passed.empty() ? "" : "; ") + go_on->why;
    go_on->why = passed;
  }
  return decision;
}

/// Of a trial that is finished, and not stopped by a cutoff any more.
void Asha::enter_passed(Progress& progress, double value) {
  auto& rungs = brackets_[progress.bracket];
  const auto score = objective_.score(value);
  while (static_cast<std::size_t>(progress.judged + 1) < rungs.size()) {
    auto& rung = rungs[static_cast<std::size_t>(++progress.judged)];
    const auto needed = cutoff(rung);
    enter(rung, score);
    if (!std::isfinite(score) || (needed && score < *needed)) break;
  }
}

/// Of a report that comes to no rung: the first one of a trial says which bracket was drawn.
Decision Asha::unjudged(std::size_t bracket, bool is_first) const {
  if (!is_first || brackets_.size() == 1) return {};
  std::string times;
  for (const auto& rung : brackets_[bracket])
    times += fmt::format("{}{}", times.empty() ? "" : ", ", rung.t);
  return GoOn{.why = fmt::format("in bracket {} of {}, as drawn: judged at t={}", bracket,
                                 brackets_.size(), times)};
}

Decision Asha::on_report(const Trial& trial, const Population&) {
  const bool is_first = !running_.contains(trial.id);
  auto& progress = progress_of(trial.id);
  const auto t = trial.t;
  if (t <= progress.last_t) return {};
  progress.last_t = t;
  const auto value = objective_.value_in(trial.last);
  if (t >= options_.max_t) {
    if (value) enter_passed(progress, *value);
    return Finish{fmt::format("trained to max_t={}", options_.max_t)};
  }
  const auto before = progress.judged;
  auto decision = value ? judge_passed(progress, t, *value) : Decision();
  return progress.judged == before ? unjudged(progress.bracket, is_first) : decision;
}

void Asha::on_end(TrialId trial, const Population&) { running_.erase(trial); }

std::vector<RungSummary> Asha::rungs() const {
  std::vector<RungSummary> all;
  for (std::size_t bracket = 0; bracket < brackets_.size(); ++bracket) {
    for (std::size_t index = 0; index < brackets_[bracket].size(); ++index) {
      const auto& rung = brackets_[bracket][index];
      const auto needed = cutoff(rung);
      all.push_back({static_cast<int>(bracket), static_cast<int>(index), rung.t, rung.scores.size(),
                     rung.stopped, rung.not_finite,
                     needed ? std::optional(value_of(*needed, objective_.mode)) : std::nullopt});
    }
  }
  return all;
}

std::string Asha::save() const {
  Json brackets = Json::array();
  for (const auto& rungs : brackets_) {
    auto& saved = brackets.emplace_back(Json::array());
    for (const auto& rung : rungs) {
      auto scores = Json::array();
      for (double score : rung.scores) scores.push_back(to_json(score));
      saved.push_back({{"t", rung.t},
                       {"scores", scores},
                       {"stopped", rung.stopped},
                       {"not_finite", rung.not_finite}});
    }
  }
  Json running = Json::array();
  for (const auto& [trial, at] : running_)
    running.push_back(Json{trial, at.bracket, at.judged, at.last_t});
  return dump({{"scheduler", "asha"},
               {"max_t", options_.max_t},
               {"eta", options_.eta},
               {"grace", options_.grace},
               {"metric", objective_.metric},
               {"mode", objective_.mode == Mode::Max ? "max" : "min"},
               {"seed", seed_},
               {"brackets", brackets},
               {"running", running}});
}

void Asha::load(std::string_view saved) {
  try {
    take_up(saved);
  } catch (const Json::exception& broken) {
    throw std::invalid_argument(fmt::format("not a state of asha: {}", broken.what()));
  }
}

void Asha::take_up(std::string_view saved) {
  const auto json = parse(saved, "a scheduler's state");
  check_same_scheduler(json, parse(Asha(options_, objective_, seed_).save(), "a scheduler's state"),
                       {"scheduler", "max_t", "eta", "grace", "metric", "mode", "seed"});
  auto brackets = Asha(options_, objective_, seed_).brackets_;
  if (json.at("brackets").size() != brackets.size())
    throw std::invalid_argument("saved with other brackets");
  for (std::size_t b = 0; b < brackets.size(); ++b) {
    for (std::size_t r = 0; r < brackets[b].size(); ++r) {
      const auto& from = json.at("brackets").at(b).at(r);
      auto& rung = brackets[b][r];
      rung.stopped = from.at("stopped").get<std::size_t>();
      rung.not_finite = from.at("not_finite").get<std::size_t>();
      for (const auto& score : from.at("scores")) rung.scores.push_back(number_from(score));
      std::ranges::sort(rung.scores);
    }
  }
  std::map<TrialId, Progress> running;
  for (const auto& each : json.at("running")) {
    const auto bracket = each.at(1).get<std::size_t>();
    if (bracket >= brackets.size()) throw std::invalid_argument("saved with other brackets");
    running[each.at(0).get<TrialId>()] = {bracket, each.at(2).get<int>(),
                                          each.at(3).get<std::int64_t>()};
  }
  brackets_ = std::move(brackets);
  running_ = std::move(running);
}

SchedulerFactory asha(AshaOptions options) {
  // Refuses bad options here, where they were written.
  [[maybe_unused]] const Asha refused(options, {}, 0);
  return
      [options](const Objective& objective, std::uint64_t seed) -> std::unique_ptr<TrialScheduler> {
        if (options.promote) return std::make_unique<AshaPromotion>(options, objective, seed);
        return std::make_unique<Asha>(options, objective, seed);
      };
}

}  // namespace troupe::tune
