#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <catch2/catch.hpp>

#include <troupe/tune/scheduler.hpp>

#include "support/hand_made_trials.hpp"

namespace troupe::tune {

/// A report without the metric.
inline Decision silent(HandMadeTrials& trials, TrialScheduler& scheduler, TrialId id,
                       std::int64_t t) {
  trials.begin(id);
  trials.all[id].t = t;
  trials.all[id].last = {{"seconds", 1}};
  return scheduler.on_report(trials.all[id], {trials.all, trials.to_come});
}

inline std::vector<std::size_t> reached(const TrialScheduler& scheduler) {
  std::vector<std::size_t> all;
  for (const auto& rung : scheduler.rungs()) all.push_back(rung.reached);
  return all;
}

using Counts = std::vector<std::size_t>;

/// A search whose trials each have the metric with some of their reports, in random order on a few gangs.
class SparseSearch {
 public:
  SparseSearch(TrialScheduler& scheduler, std::uint64_t seed, std::uint64_t count,
               std::int64_t max_t)
      : scheduler_{scheduler}, random_{seed}, count_{count}, max_t_{max_t} {
    for (TrialId id = 0; id < count; ++id) {
      auto& its = values_.emplace_back();
      const auto every = 1 + random_.below(6);
      for (std::int64_t t = 1; t <= max_t; ++t) {
        if (random_.below(every) == 0 || t == max_t) its[t] = random_.unit();
      }
    }
    trials_.to_come = count;
  }

  void run(std::size_t gangs) {
    while (true) {
      while (running_.size() < gangs && take_place()) continue;
      if (running_.empty()) return;
      const auto id = running_[random_.below(running_.size())];
      const auto t = trials_.all[id].t + 1;
      const auto at = values_[id].find(t);
      const auto decision = at == values_[id].end() ? silent(trials_, scheduler_, id, t)
                                                    : trials_.report(scheduler_, id, t, at->second);
      REQUIRE(finishes(decision) == (t == max_t_));
      if (goes_on(decision)) continue;
      std::erase(running_, id);
      if (finishes(decision)) trials_.end(scheduler_, id, Status::Terminated);
    }
  }

  std::int64_t trained(TrialId id) const { return trials_.all[id].t; }
  /// What the trial has at a rung: the first value at or behind it.
  double value_at(TrialId id, std::int64_t t) const { return values_[id].lower_bound(t)->second; }
  std::int64_t report_at(TrialId id, std::int64_t t) const {
    return values_[id].lower_bound(t)->first;
  }

 private:
  bool take_place() {
    if (const auto resumed = trials_.place(scheduler_)) {
      running_.push_back(*resumed);
      return true;
    }
    const TrialId next = trials_.all.size();
    if (next == count_) return false;
    trials_.begin(next);
    trials_.to_come = count_ - next - 1;
    running_.push_back(next);
    return true;
  }

  TrialScheduler& scheduler_;
  Random random_;
  std::uint64_t count_;
  std::int64_t max_t_;
  std::vector<std::map<std::int64_t, double>> values_;
  HandMadeTrials trials_;
  std::vector<TrialId> running_;
};

}  // namespace troupe::tune
