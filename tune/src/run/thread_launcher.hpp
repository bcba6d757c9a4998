#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <troupe/tune/detail/search.hpp>

#include "run/launcher.hpp"

namespace troupe::tune {

/// Runs each attempt on a thread of its own, which waits for its gang and hands on what it reports. The search's thread
/// owns this; the attempts' threads touch only what the lock guards.
class ThreadLauncher final : public Launcher {
 public:
  /// `work_of` says what a launch runs.
  ThreadLauncher(detail::RunAttempt run_attempt, std::function<detail::Work(const Launch&)> work_of);
  /// Ends what still runs, and waits for it.
  ~ThreadLauncher() override;

  void launch(const Launch& launch) override;
  std::optional<GangEvent> wait(Seconds timeout) override;
  void answer(TrialId trial, std::int64_t k, Verdict verdict) override;
  void replace(const Launch& launch, std::int64_t k) override;
  void end(TrialId trial) override;
  Seconds now() const override { return std::chrono::steady_clock::now() - began_; }

 private:
  class ThreadAttempt;

  void run(const detail::Work& work, ThreadAttempt& attempt);
  void push(GangEvent event);
  void join(TrialId trial);

  const detail::RunAttempt run_attempt_;
  const std::function<detail::Work(const Launch&)> work_of_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  std::mutex mutex_;  ///< guards events_ and what the attempts share with their threads
  std::condition_variable happened_;
  std::deque<GangEvent> events_;
  std::map<TrialId, std::unique_ptr<ThreadAttempt>> attempts_;  // the search's thread alone
};

}  // namespace troupe::tune
