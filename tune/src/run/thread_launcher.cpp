#include "run/thread_launcher.hpp"

#include <exception>
#include <utility>

#include <troupe/tune/detail/checkpoints.hpp>

#include "run/fault.hpp"

namespace troupe::tune {

/// One trial's thread, and what it shares with the search's.
class ThreadLauncher::ThreadAttempt final : public detail::Attempt {
 public:
  ThreadAttempt(ThreadLauncher& launcher, TrialId trial) : launcher_{launcher}, trial_{trial} {}

  TrialId trial() const { return trial_; }
  bool is_over() const override {
    const std::lock_guard lock(launcher_.mutex_);
    return over_;
  }

  void placed(std::function<void()> kill) override {
    {
      const std::lock_guard lock(launcher_.mutex_);
      if (over_) raise({.kind = Failure::Kind::Cancelled, .message = "ended before it began", .type = {}, .where = {}});
      kill_ = std::move(kill);
    }
    launcher_.push({.kind = GangEvent::Kind::Placed, .trial = trial_});
  }

  void begun() override { begun_ = true; }
  void say(std::string notice) override {
    launcher_.push({.kind = GangEvent::Kind::Notice, .trial = trial_, .text = std::move(notice)});
  }
  bool has_begun() const { return begun_; }

  Verdict judge(const detail::TrialEvent& report) override {
    const auto k = static_cast<std::int64_t>(report.index) + 1;
    launcher_.push({GangEvent::Kind::Reported, trial_, k, report.metrics, report.checkpoint, {}, {}});
    std::unique_lock lock(launcher_.mutex_);
    answered_.wait(lock, [&] { return verdict_ || over_; });
    return std::exchange(verdict_, std::nullopt).value_or(Verdict::Stop);
  }

  std::optional<detail::Work> replacement() override {
    const std::lock_guard lock(launcher_.mutex_);
    if (over_ && next_) raise({.kind = Failure::Kind::Cancelled, .message = "ended", .type = {}, .where = {}});
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
    std::function<void()> kill;
    {
      const std::lock_guard lock(launcher_.mutex_);
      over_ = true;
      kill = kill_;
      answered_.notify_all();
    }
    if (kill) kill();
  }

  std::thread thread;  // the search's

 private:
  ThreadLauncher& launcher_;
  const TrialId trial_;
  std::condition_variable answered_;
  std::optional<Verdict> verdict_;
  std::optional<detail::Work> next_;
  std::function<void()> kill_;
  bool over_ = false;
  bool begun_ = false;  // its own thread's
};

ThreadLauncher::ThreadLauncher(detail::RunAttempt run_attempt, std::function<detail::Work(const Launch&)> work_of)
    : run_attempt_{std::move(run_attempt)}, work_of_{std::move(work_of)} {}

ThreadLauncher::~ThreadLauncher() {
  for (auto& [trial, attempt] : attempts_) attempt->end();
  for (auto& [trial, attempt] : attempts_) {
    if (attempt->thread.joinable()) attempt->thread.join();
  }
}

void ThreadLauncher::push(GangEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  happened_.notify_one();
}

void ThreadLauncher::run(const detail::Work& work, ThreadAttempt& attempt) {
  GangEvent last{.kind = GangEvent::Kind::Failed, .trial = attempt.trial()};
  try {
    run_attempt_(work, attempt);
    last.kind = GangEvent::Kind::Ended;
  } catch (const detail::CheckpointGone& gone) {
    last.text = gone.what();
    last.fault = Fault::Checkpoint;
  } catch (const Impossible& impossible) {
    last.kind = GangEvent::Kind::Impossible;
    last.text = impossible.what();
  } catch (const Error& error) {
    last.text = error.what();
    last.fault = fault_of(error.failure(), attempt.has_begun());
  } catch (const std::exception& error) {
    last.text = error.what();
  } catch (...) {
    last.text = "it threw something that is no std::exception";
  }
  push(std::move(last));
}

void ThreadLauncher::launch(const Launch& launch) {
  auto& attempt = attempts_[launch.trial] = std::make_unique<ThreadAttempt>(*this, launch.trial);
  attempt->thread = std::thread([this, work = work_of_(launch), at = attempt.get()] { run(work, *at); });
}

std::optional<GangEvent> ThreadLauncher::wait(Seconds timeout) {
  std::unique_lock lock(mutex_);
  if (!happened_.wait_for(lock, timeout, [&] { return !events_.empty(); })) return std::nullopt;
  auto event = std::move(events_.front());
  events_.pop_front();
  lock.unlock();
  using Kind = GangEvent::Kind;
  const bool is_last = event.kind == Kind::Ended || event.kind == Kind::Failed || event.kind == Kind::Impossible;
  if (is_last) join(event.trial);
  return event;
}

void ThreadLauncher::join(TrialId trial) {
  const auto at = attempts_.find(trial);
  at->second->thread.join();
  attempts_.erase(at);
}

void ThreadLauncher::answer(TrialId trial, std::int64_t /*k*/, Verdict verdict) {
  if (const auto at = attempts_.find(trial); at != attempts_.end()) at->second->answer(verdict, std::nullopt);
}

void ThreadLauncher::replace(const Launch& launch, std::int64_t /*k*/) {
  const auto at = attempts_.find(launch.trial);
  if (at != attempts_.end()) at->second->answer(Verdict::Stop, work_of_(launch));
}

void ThreadLauncher::end(TrialId trial) {
  if (const auto at = attempts_.find(trial); at != attempts_.end()) at->second->end();
}

}  // namespace troupe::tune
