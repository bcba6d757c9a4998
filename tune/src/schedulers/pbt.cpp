#include <troupe/tune/schedulers/pbt.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "schedulers/explorer.hpp"
#include "schedulers/truncation.hpp"
#include "text/format.hpp"

namespace troupe::tune {
namespace {

constexpr std::string_view kNoCheckpoint =
    ": the first report has no checkpoint; nobody can take over a trial that has none at its "
    "interval. Report it with ctx.report({...}, ctx.checkpoint(model, optimizer)), or under "
    "tune::Context with the directory that was written; a program names it as \"checkpoint\" in "
    "its report";

/// Whether a trial other than `self` is further behind than `t` and has no place.
bool is_somebody_behind(const Population& population, TrialId self, std::int64_t t) {
  if (population.to_come > 0) return true;
  return std::ranges::any_of(population.trials, [&](const Trial& trial) {
    const bool waits = trial.status == Status::Pending || trial.status == Status::Paused;
    return waits && trial.id != self && trial.t < t;
  });
}

constexpr auto kNoEnd = std::numeric_limits<std::int64_t>::max();

/// The t at which training ends (rule 9); kNoEnd where that is not known.
std::int64_t end_of_training(const Population& population) {
  std::int64_t furthest = 0, end = 0;
  for (const auto& trial : population.trials) {
    furthest = std::max(furthest, trial.t);
    for (const auto& takeover : trial.takeovers) furthest = std::max(furthest, takeover.t);
    if (trial.status == Status::Terminated) end = std::max(end, trial.t);
  }
  return end > 0 && end == furthest ? end : kNoEnd;
}

}  // namespace

void check(const PbtOptions& options, std::string_view scheduler) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", scheduler, what));
  };
  if (options.interval < 1)
    refuse(fmt::format("interval is {}: give the reports between two judgements, at least 1",
                       options.interval));
  if (options.burn_in < 0) refuse(fmt::format("burn_in is {}, at least 0", options.burn_in));
  if (options.max_t < 0) refuse(fmt::format("max_t is {}, at least 0", options.max_t));
  const auto first = std::max(options.interval, options.burn_in);
  if (options.max_t > 0 && first >= options.max_t) {
    refuse(
        fmt::format("max_t is {}, so nobody would be judged: the first time is at t={} (interval "
                    "{}, burn_in {})",
                    options.max_t, first, options.interval, options.burn_in));
  }
  if (!(options.quantile >= 0 && options.quantile <= 0.5))
    refuse(fmt::format("quantile is {}, 0 to 0.5", options.quantile));
  if (!(options.resample >= 0 && options.resample <= 1))
    refuse(fmt::format("resample is {}, 0 to 1", options.resample));
  if (options.factors.empty())
    refuse("factors is empty: give what a number is multiplied by, as {1.2, 0.8}");
  for (const double factor : options.factors) {
    if (!(factor > 0) || !std::isfinite(factor))
      refuse(fmt::format("a factor is {}: above 0 and finite", factor));
  }
  if (options.mutate.empty())
    refuse("mutate is empty: name the fields that change, as {{\"lr\", loguniform(1e-4, 1)}}");
  for (auto field = options.mutate.begin(); field != options.mutate.end(); ++field) {
    if (std::any_of(options.mutate.begin(), field,
                    [&](const auto& other) { return other.name == field->name; }))
      refuse(fmt::format("field '{}' stands twice in mutate", field->name));
  }
}

Pbt::Pbt(PbtOptions options, Objective objective, std::uint64_t seed)
    : Pbt{options, std::move(objective), seed, factor_explorer(options, seed)} {}

Pbt::Pbt(PbtOptions options, Objective objective, std::uint64_t seed,
         std::unique_ptr<Explorer> explorer)
    : options_{std::move(options)},
      objective_{std::move(objective)},
      seed_{seed},
      explorer_{std::move(explorer)},
      sync_t_{std::max(options_.interval, options_.burn_in)} {
  check(options_, explorer_->name());
}

Pbt::~Pbt() = default;

SchedulerNeeds Pbt::needs() const {
  return {.checkpoints = true,
          .own_search = true,
          .counts_trials = true,
          .least_trials = 2,
          .first_judged_t = std::max(options_.interval, options_.burn_in),
          .mutations = options_.mutate};
}

bool Pbt::is_due(const Trial& trial, const Member& member) const {
  if (options_.synchronous) return !member.arrived && trial.t >= sync_t_;
  return trial.t >= options_.burn_in && trial.t - member.judged_t >= options_.interval;
}

void Pbt::judge(const Trial& trial, Member& member, double value) {
  member.judged_t = member.noted_t = trial.t;
  member.value = value;
  member.config = trial.config;
  member.checkpoint = gone_.contains(trial.checkpoint) ? "" : trial.checkpoint;
  member.checkpoint_t = trial.checkpoint_t;
  member.takeovers = trial.takeovers.size();
  explorer_->on_judged(trial.id, trial.config, trial.t, objective_.score(value));
}

Decision Pbt::on_report(const Trial& trial, const Population& population) {
  auto& member = members_[trial.id];
  member.failed = false;
  if (trial.checkpoint_t == trial.t) gone_.erase(trial.checkpoint);  // written again
  if (options_.max_t > 0 && trial.t >= options_.max_t)
    return Finish{fmt::format("trained to max_t={}", options_.max_t)};
  const auto value = objective_.value_in(trial.last);
  auto decision = [&]() -> Decision {
    if (member.due)
      return hand_out(trial, member, *std::exchange(member.due, std::nullopt), population);
    if (value) explorer_->on_report(trial.id, trial.t, objective_.score(*value));
    if (value && is_due(trial, member)) {
      judge(trial, member, *value);
      return options_.synchronous ? judged_together(trial, population)
                                  : judged_alone(trial, population);
    }
    if (!member.pausing) return GoOn{};
    if (options_.synchronous || is_somebody_behind(population, trial.id, member.judged_t)) {
      return pause_or_go_on(
          trial, member, options_.synchronous ? "waits for the population" : "others are behind");
    }
    member.pausing = false;
    return GoOn{};
  }();
  if (auto* go_on = std::get_if<GoOn>(&decision);
      go_on && trial.checkpoint.empty() && !told_checkpoint_is_missing_) {
    told_checkpoint_is_missing_ = true;
    go_on->notice = fmt::format("{}{}", explorer_->name(), kNoCheckpoint);
  }
  return decision;
}

Pbt::Quantiles Pbt::quantiles() const {
  std::vector<std::pair<TrialId, double>> scored;
  for (const auto& [trial, member] : members_) {
    if (member.value) scored.emplace_back(trial, objective_.score(*member.value));
  }
  std::ranges::stable_sort(scored, {}, &std::pair<TrialId, double>::second);
  const auto size = truncation_size(scored.size(), options_.quantile);
  Quantiles found;
  for (const auto& [trial, score] : scored) found.all.push_back(trial);
  for (std::size_t i = 0; i < size; ++i) {
    found.lowest.push_back(scored[i].first);
    found.highest.push_back(scored[scored.size() - size + i].first);
  }
  return found;
}

/// `end`: of training (rule 9).
bool Pbt::can_donate(TrialId trial, std::int64_t end) const {
  const auto at = members_.find(trial);
  return at != members_.end() && !at->second.checkpoint.empty() && at->second.value &&
         std::isfinite(*at->second.value) && at->second.checkpoint_t < end;
}

/// "accuracy 0.9 at t=5 is place 1 of 8".
std::string Pbt::standing(TrialId trial, const Quantiles& quantiles) const {
  const auto at = members_.find(trial);
  if (at == members_.end() || !at->second.value)
    return fmt::format("{} is not known", objective_.metric);
  const auto& all = quantiles.all;
  const auto from_worst = std::ranges::find(all, trial) - all.begin();
  return fmt::format("{} {} at t={} is place {} of {}", objective_.metric,
                     short_number(*at->second.value), at->second.noted_t,
                     static_cast<std::ptrdiff_t>(all.size()) - from_worst, all.size());
}

Exploit Pbt::make_exploit(TrialId trial, TrialId donor) {
  const auto& from = members_.at(donor);
  const auto why = fmt::format("{}, trial {} has {} at t={}", standing(trial, quantiles()), donor,
                               short_number(from.value.value()), from.noted_t);
  return {.donor = donor,
          .checkpoint = from.checkpoint,
          .checkpoint_t = from.checkpoint_t,
          .donor_takeovers = from.takeovers,
          .config = explorer_->explored(
              trial, {from.config, from.noted_t, objective_.score(*from.value)}, draws_++),
          .why = why};
}

std::optional<Exploit> Pbt::draw_exploit(const Trial& trial, const Quantiles& quantiles,
                                         const Population& population) {
  const auto end = end_of_training(population);
  if (trial.t >= end) return std::nullopt;
  std::vector<TrialId> donors;
  std::ranges::copy_if(quantiles.highest, std::back_inserter(donors),
                       [&](TrialId donor) { return donor != trial.id && can_donate(donor, end); });
  if (donors.empty()) return std::nullopt;
  Random random(seed_, draws_++, "donor");
  return make_exploit(trial.id, donors[random.below(donors.size())]);
}

Exploit Pbt::hand_out(const Trial& trial, Member& member, Exploit exploit,
                      const Population& population) {
  const auto donor = members_.find(exploit.donor);
  member.before_takeover = member.judged_t;
  member.judged_t = donor == members_.end() ? exploit.checkpoint_t : donor->second.noted_t;
  member.pausing = false;
  // Who waits at the same t waits longer. A member that is thrown back time and again must not keep
  // its donor from its turn. A synchronous population waits at the next interval in any case.
  exploit.in_turn =
      !options_.synchronous && is_somebody_behind(population, trial.id, exploit.checkpoint_t + 1);
  return exploit;
}

Decision Pbt::pause_or_go_on(const Trial& trial, Member& member, std::string why) {
  member.pausing = trial.checkpoint.empty() || trial.checkpoint_t != trial.t;
  if (member.pausing) return GoOn{.why = fmt::format("pauses at the next checkpoint: {}", why)};
  return Pause{std::move(why)};
}

Decision Pbt::judged_alone(const Trial& trial, const Population& population) {
  auto& member = members_.at(trial.id);
  const auto found = quantiles();
  auto judged = standing(trial.id, found);
  if (!found.lowest.empty()) judged += fmt::format(", the last {} take over", found.lowest.size());
  if (std::ranges::count(found.lowest, trial.id) > 0) {
    if (auto exploit = draw_exploit(trial, found, population))
      return hand_out(trial, member, *std::move(exploit), population);
    const auto end = end_of_training(population);
    judged += trial.t >= end  ? fmt::format("; training ends at t={}", end)
              : end != kNoEnd ? fmt::format(
                                    "; none of the best has a checkpoint from before "
                                    "training ends at t={}",
                                    end)
                              : "; none of the best has a checkpoint";
  }
  if (!is_somebody_behind(population, trial.id, trial.t)) {
    member.pausing = false;
    return GoOn{.why = "judged: " + judged};
  }
  return pause_or_go_on(
      trial, member,
      fmt::format("others wait for a place, and are behind t={}; {}", trial.t, judged));
}

// ---- synchronous --------------------------------------------------------------------------------

bool Pbt::all_arrived(const Population& population) const {
  if (population.to_come > 0) return false;
  return std::ranges::all_of(population.trials, [&](const Trial& trial) {
    const auto at = members_.find(trial.id);
    if (trial.over()) return true;
    return at != members_.end() && (at->second.arrived || at->second.failed);
  });
}

void Pbt::go_on_together(const Population& population) {
  const auto found = quantiles();
  auto highest_t = sync_t_ + options_.interval;
  for (const auto& trial : population.trials) {
    const auto at = members_.find(trial.id);
    if (at == members_.end() || !at->second.arrived) continue;
    highest_t = std::max(highest_t, trial.t);
    if (std::ranges::count(found.lowest, trial.id) > 0)
      at->second.due = draw_exploit(trial, found, population);
  }
  for (auto& [trial, member] : members_) {
    member.arrived = false;
    member.pausing = false;
  }
  sync_t_ = highest_t;
}

Decision Pbt::judged_together(const Trial& trial, const Population& population) {
  auto& member = members_.at(trial.id);
  member.arrived = true;
  if (!all_arrived(population)) {
    return pause_or_go_on(trial, member,
                          fmt::format("waits for the population at t={}; so far {}", sync_t_,
                                      standing(trial.id, quantiles())));
  }
  go_on_together(population);
  if (member.due)
    return hand_out(trial, member, *std::exchange(member.due, std::nullopt), population);
  return GoOn{.why = fmt::format("the population is at t={}: {}", trial.t,
                                 standing(trial.id, quantiles()))};
}

// ---- what else happens --------------------------------------------------------------------------

void Pbt::on_end(TrialId trial, const Population& population) {
  members_.erase(trial);
  explorer_->forget(trial);
  go_on_without(population);
}

void Pbt::on_failure(TrialId trial, const Population& population) {
  auto& member = members_[trial];
  member.failed = true;
  // It has been judged, and is not to run ahead.
  member.pausing = options_.synchronous && member.arrived;
  go_on_without(population);
}

/// The last one that the population waited for may be gone.
void Pbt::go_on_without(const Population& population) {
  const bool any_arrived =
      std::ranges::any_of(members_, [](const auto& each) { return each.second.arrived; });
  if (options_.synchronous && any_arrived && all_arrived(population)) go_on_together(population);
}

Turn Pbt::on_place(const Population& population) {
  if (population.to_come > 0) return Begin{};
  const auto* next = furthest_behind(population.trials, [&](const Trial& trial) {
    const auto member = members_.find(trial.id);
    return member == members_.end() || !member->second.arrived;
  });
  if (!next) return Nobody{};
  auto& member = members_[next->id];
  member.pausing = false;
  if (!member.due) return Resume{.trial = next->id, .why = why_furthest_behind(*next)};
  auto exploit = hand_out(*next, member, *std::exchange(member.due, std::nullopt), population);
  exploit.in_turn = false;  // this is its turn
  return Resume{next->id, std::move(exploit)};
}

std::optional<Exploit> Pbt::on_checkpoint_gone(const Trial& trial, const std::string& gone,
                                               const Population& population) {
  gone_.insert(gone);
  for (auto& [id, member] : members_) {
    if (member.checkpoint == gone) member.checkpoint.clear();
  }
  explorer_->forget(trial.id);
  const auto found = quantiles();
  for (auto& [id, member] : members_) {
    if (!member.due || member.due->checkpoint != gone) continue;
    explorer_->forget(id);
    member.due = draw_exploit(population.trials.at(id), found, population);
  }
  const auto end = end_of_training(population);
  const auto donor = std::find_if(found.highest.rbegin(), found.highest.rend(), [&](TrialId each) {
    return each != trial.id && can_donate(each, end);
  });
  auto& member = members_[trial.id];
  if (member.before_takeover < member.judged_t) member.judged_t = member.before_takeover;
  if (donor == found.highest.rend()) return std::nullopt;
  auto exploit = hand_out(trial, member, make_exploit(trial.id, *donor), population);
  exploit.in_turn = false;  // it has its place already
  return exploit;
}

std::vector<std::string> Pbt::checkpoints() const {
  std::set<std::string> all;
  for (const auto& [trial, member] : members_) {
    if (!member.checkpoint.empty()) all.insert(member.checkpoint);
    if (member.due) all.insert(member.due->checkpoint);
  }
  return {all.begin(), all.end()};
}

SchedulerFactory pbt(PbtOptions options) {
  // Refuses bad options here, where they were written.
  [[maybe_unused]] const Pbt refused(options, {}, 0);
  return [options](const Objective& objective, std::uint64_t seed) {
    return std::make_unique<Pbt>(options, objective, seed);
  };
}

}  // namespace troupe::tune
