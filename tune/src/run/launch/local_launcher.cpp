#include "run/launch/local_launcher.hpp"

#include <cassert>
#include <exception>
#include <utility>

#include <troupe/detail/core.hpp>
#include <troupe/errors.hpp>

#include "run/fault.hpp"

namespace troupe::tune {

/// The trial's thread, and what it shares with the search's.
class LocalLauncher::Attempt final : public detail::LocalAttempt {
 public:
  Attempt(LocalLauncher& launcher, TrialId trial) : launcher_{launcher}, trial_{trial} {}

  TrialId trial() const { return trial_; }

  void begins() override {
    {
      const std::lock_guard lock(launcher_.mutex_);
      if (over_) refuse_to_begin();
    }
    launcher_.push(
        {.kind = GangEvent::Kind::Placed, .trial = trial_, .places = {{"this process", 0}}});
  }

  Verdict judge(const detail::TrialEvent& report) override {
    const auto k = static_cast<std::int64_t>(report.index) + 1;
    launcher_.push({.kind = GangEvent::Kind::Reported,
                    .trial = trial_,
                    .k = k,
                    .metrics = report.metrics,
                    .checkpoint = report.checkpoint});
    std::unique_lock lock(launcher_.mutex_);
    answered_.wait(lock, [&] { return verdict_ || over_; });
    return std::exchange(verdict_, std::nullopt).value_or(Verdict::Stop);
  }

  std::optional<detail::Work> replacement() override {
    const std::lock_guard lock(launcher_.mutex_);
    if (over_ && next_) refuse_to_begin();
    return std::exchange(next_, std::nullopt);
  }
  bool is_replaced() const override {
    const std::lock_guard lock(launcher_.mutex_);
    return next_.has_value();
  }

  void answer(Verdict verdict, std::optional<detail::Work> next) {
    const std::lock_guard lock(launcher_.mutex_);
    verdict_ = verdict;
    next_ = std::move(next);
    answered_.notify_all();
  }

  void end() {
    const std::lock_guard lock(launcher_.mutex_);
    over_ = true;
    answered_.notify_all();
  }
  /// Whether the search has ended it.
  bool is_over() const {
    const std::lock_guard lock(launcher_.mutex_);
    return over_;
  }

  std::thread thread;  // the search's

 private:
  [[noreturn]] static void refuse_to_begin() {
    raise({.kind = Failure::Kind::Cancelled,
           .message = "the search ended before it began",
           .type = {},
           .where = {}});
  }

  LocalLauncher& launcher_;
  const TrialId trial_;
  std::condition_variable answered_;
  std::optional<Verdict> verdict_;
  std::optional<detail::Work> next_;
  bool over_ = false;
};

LocalLauncher::LocalLauncher(detail::RunHere run_here,
                             std::function<detail::Work(const Launch&)> work_of, Seconds already)
    : run_here_{std::move(run_here)}, work_of_{std::move(work_of)}, already_{already} {}

LocalLauncher::~LocalLauncher() {
  if (!attempt_) return;
  attempt_->end();
  attempt_->thread.join();
}

void LocalLauncher::push(GangEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  happened_.notify_one();
}

void LocalLauncher::run(const detail::Work& work, Attempt& attempt) {
  GangEvent last{.kind = GangEvent::Kind::Ended, .trial = attempt.trial()};
  try {
    run_here_(work, attempt);
  } catch (...) {
    last = attempt.is_over() ? ended_by_search(attempt.trial())
                             : failure_event_here(attempt.trial(), std::current_exception());
  }
  push(std::move(last));
}

void LocalLauncher::launch(const Launch& launch) {
  assert(!attempt_);
  attempt_ = std::make_unique<Attempt>(*this, launch.trial);
  // A search in a task holds the task's CPU, which the trial uses while the search waits for it.
  attempt_->thread = std::thread(
      [this, work = work_of_(launch), at = attempt_.get(), use = troupe::detail::cpu_use()] {
        const troupe::detail::CpuUser user(use);
        run(work, *at);
      });
}

std::optional<GangEvent> LocalLauncher::wait(Seconds timeout) {
  std::unique_lock lock(mutex_);
  if (!happened_.wait_for(lock, timeout, [&] { return !events_.empty(); })) return std::nullopt;
  auto event = std::move(events_.front());
  events_.pop_front();
  lock.unlock();
  if (is_last(event)) {
    attempt_->thread.join();
    attempt_.reset();
  }
  return event;
}

bool LocalLauncher::is_running(TrialId trial) const {
  return attempt_ && attempt_->trial() == trial;
}

void LocalLauncher::answer(TrialId trial, std::int64_t /*k*/, Verdict verdict) {
  if (is_running(trial)) attempt_->answer(verdict, std::nullopt);
}

void LocalLauncher::replace(const Launch& launch, std::int64_t /*k*/) {
  if (is_running(launch.trial)) attempt_->answer(Verdict::Stop, work_of_(launch));
}

void LocalLauncher::end(TrialId trial) {
  if (is_running(trial)) attempt_->end();
}

}  // namespace troupe::tune
