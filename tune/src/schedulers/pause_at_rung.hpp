#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <troupe/tune/scheduler.hpp>

/// What schedulers share that pause trials at rungs.
namespace troupe::tune {

inline bool is_paused(const Population& population, TrialId trial) {
  if (trial >= population.trials.size()) return false;
  const auto& its = population.trials[trial];
  return its.status == Status::Paused && !its.in_flight;
}

/// Says once, by `told`, what a trial loses that is paused without a checkpoint.
inline Pause pause_at_rung(const Trial& trial, int rung, std::string why,
                           std::string_view scheduler, bool& told) {
  Pause pause{std::move(why), rung, {}};
  const bool has_checkpoint = !trial.checkpoint.empty() && trial.checkpoint_t == trial.t;
  if (has_checkpoint || std::exchange(told, true)) return pause;
  pause.notice = fmt::format(
      "{}: a trial was paused at its rung without a checkpoint of that report; when it goes on it "
      "trains from its last one, or from the start, once more. Report one with "
      "ctx.report({{...}}, ctx.checkpoint(model, optimizer)), or under tune::Context with the "
      "directory that was written; a program names it as \"checkpoint\" in its report",
      scheduler);
  return pause;
}

}  // namespace troupe::tune
