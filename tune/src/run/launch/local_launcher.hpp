#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <troupe/tune/detail/search.hpp>

#include "run/launch/launcher.hpp"

namespace troupe::tune {

/// Runs one trial at a time in this process, on a thread of its own: the function calls report()
/// wherever it likes, and waits there. The search's thread owns this; the trial's thread touches
/// only what the lock guards.
class LocalLauncher final : public Launcher {
 public:
  /// `work_of` says what a launch runs.
  LocalLauncher(detail::RunHere run_here, std::function<detail::Work(const Launch&)> work_of,
                Seconds already = Seconds(0));
  /// Waits until the function has left its next report.
  ~LocalLauncher() override;

  /// The last trial is over.
  void launch(const Launch& launch) override;
  std::optional<GangEvent> wait(Seconds timeout) override;
  void answer(TrialId trial, std::int64_t k, Verdict verdict) override;
  void replace(const Launch& launch, std::int64_t k) override;
  void end(TrialId trial) override;
  bool ends_silent() const override { return false; }
  Seconds now() const override { return already_ + (std::chrono::steady_clock::now() - began_); }

 private:
  class Attempt;

  void run(const detail::Work& work, Attempt& attempt);
  void push(GangEvent event);
  bool is_running(TrialId trial) const;

  const detail::RunHere run_here_;
  const std::function<detail::Work(const Launch&)> work_of_;
  const Seconds already_;  // that the run had gone on for before
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  std::mutex mutex_;  ///< guards events_ and what the attempt shares with its thread
  std::condition_variable happened_;
  std::deque<GangEvent> events_;
  std::unique_ptr<Attempt> attempt_;  // the search's thread alone
};

}  // namespace troupe::tune
