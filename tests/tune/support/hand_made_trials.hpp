#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <troupe/tune/scheduler.hpp>

#include "support/scheduler.hpp"

namespace troupe::tune {

/// A population whose trials are made by hand. Their metric is "loss".
struct HandMadeTrials {
  std::vector<Trial> all = {};
  std::uint64_t to_come = 1;
  Resume resumed = {};  ///< the last one

  void begin(TrialId id) {
    while (all.size() <= id) all.push_back({.id = all.size(), .status = Status::Running});
    all[id].in_flight = true;
  }
  Decision report(TrialScheduler& scheduler, TrialId id, std::int64_t t, double loss,
                  bool with_checkpoint = true) {
    begin(id);
    auto& trial = all[id];
    trial.t = t;
    trial.last = {{"loss", loss}};
    if (with_checkpoint) {
      trial.checkpoint = "c" + std::to_string(id) + "-" + std::to_string(t);
      trial.checkpoint_t = t;
    }
    auto decision = scheduler.on_report(trial, {all, to_come});
    if (std::holds_alternative<Pause>(decision)) {
      trial.status = Status::Paused;
      trial.in_flight = false;
    }
    return decision;
  }
  /// Who is resumed; none: a configuration begins, or nobody.
  std::optional<TrialId> place(TrialScheduler& scheduler) {
    const auto turn = scheduler.on_place({all, to_come});
    const auto* resume = std::get_if<Resume>(&turn);
    if (!resume) return std::nullopt;
    resumed = *resume;
    all[resume->trial].status = Status::Running;
    all[resume->trial].in_flight = true;
    return resume->trial;
  }
  void end(TrialScheduler& scheduler, TrialId id, Status status) {
    all[id].status = status;
    all[id].in_flight = false;
    scheduler.on_end(id, {all, to_come});
  }
};

}  // namespace troupe::tune
