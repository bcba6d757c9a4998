#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/tune/scheduler.hpp>

namespace troupe::tune {

/// A trial that has made report t: all that a scheduler which does not move checkpoints looks at.
inline Trial trial_at(TrialId id, std::int64_t t, Metrics metrics) {
  return {.id = id, .status = Status::Running, .t = t, .last = std::move(metrics)};
}

/// What a scheduler answers to report t of a trial, where it knows of no other.
inline Decision on_report(TrialScheduler& scheduler, TrialId id, std::int64_t t, Metrics metrics) {
  const std::vector trials{trial_at(id, t, std::move(metrics))};
  return scheduler.on_report(trials.front(), {trials, 0});
}

/// Tells a scheduler that the trial is over.
inline void on_end(TrialScheduler& scheduler, TrialId id) {
  const std::vector<Trial> none;
  scheduler.on_end(id, {none, 0});
}

/// Answers a report as the test says, and a free place as any scheduler does.
class ScriptedScheduler final : public TrialScheduler {
 public:
  using Script = std::function<Decision(const Trial& trial, const Population& population)>;
  explicit ScriptedScheduler(Script script) : script_{std::move(script)} {}

  Decision on_report(const Trial& trial, const Population& population) override {
    return script_(trial, population);
  }
  void on_end(TrialId, const Population&) override {}
  std::string save() const override { return "{}"; }
  void load(std::string_view) override {}

 private:
  Script script_;
};

inline bool goes_on(const Decision& decision) { return std::holds_alternative<GoOn>(decision); }
inline bool stops(const Decision& decision) { return std::holds_alternative<Stop>(decision); }
inline bool finishes(const Decision& decision) { return std::holds_alternative<Finish>(decision); }

}  // namespace troupe::tune
