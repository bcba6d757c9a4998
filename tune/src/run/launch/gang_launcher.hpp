#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include <troupe/tune/detail/search.hpp>

#include "run/launch/launcher.hpp"

namespace troupe::tune {

class GangAttempt;

/// Every launch is a gang on the cluster. Drives all of them on the search's thread: wait() sleeps
/// until a call on any gang has come, and takes the gangs as far as they go. A request for a gang
/// keeps its place in the cluster's queue until it is placed or end() takes it back.
class GangLauncher final : public Launcher {
 public:
  /// `work_of` says what a launch runs.
  GangLauncher(detail::AskForWorkers ask_for_workers,
               std::function<detail::Work(const Launch&)> work_of, Seconds already = Seconds(0));
  /// Ends what still runs.
  ~GangLauncher() override;

  void launch(const Launch& launch) override;
  std::optional<GangEvent> wait(Seconds timeout) override;
  void answer(TrialId trial, std::int64_t k, Verdict verdict) override;
  void replace(const Launch& launch, std::int64_t k) override;
  void end(TrialId trial) override;
  Seconds now() const override { return already_ + (Clock::now() - began_); }

 private:
  using Clock = std::chrono::steady_clock;
  using Attempts = std::map<TrialId, std::unique_ptr<GangAttempt>>;

  void step_all();
  Attempts::iterator step(Attempts::iterator at);
  void look_at_cluster();
  void sleep_until(Clock::time_point deadline) const;

  const detail::AskForWorkers ask_for_workers_;
  const std::function<detail::Work(const Launch&)> work_of_;
  const Seconds already_;  // that the run had gone on for before
  const Clock::time_point began_ = Clock::now();
  const troupe::detail::ObjectPtr cluster_end_ = troupe::detail::cluster_end();
  bool cluster_ended_ = false;  // the search has been told
  detail::CheckpointOrigins origins_;
  Attempts attempts_;
  std::deque<GangEvent> events_;
};

}  // namespace troupe::tune
