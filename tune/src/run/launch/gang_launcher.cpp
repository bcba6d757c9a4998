#include "run/launch/gang_launcher.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "run/fault.hpp"
#include "run/launch/gang_attempt.hpp"

namespace troupe::tune {

GangLauncher::GangLauncher(detail::AskForWorkers ask_for_workers,
                           std::function<detail::Work(const Launch&)> work_of, Seconds already)
    : ask_for_workers_{std::move(ask_for_workers)},
      work_of_{std::move(work_of)},
      already_{already} {}

GangLauncher::~GangLauncher() = default;

void GangLauncher::launch(const Launch& launch) {
  try {
    auto work = work_of_(launch);
    auto workers = ask_for_workers_(work);
    attempts_[launch.trial] =
        std::make_unique<GangAttempt>(launch.trial, std::move(work), std::move(workers), origins_);
  } catch (...) {
    events_.push_back(failure_event(launch.trial, std::current_exception(), false));
  }
}

std::optional<GangEvent> GangLauncher::wait(Seconds timeout) {
  const auto deadline = Clock::now() + std::chrono::ceil<Clock::duration>(timeout);
  while (events_.empty()) {
    look_at_cluster();
    step_all();
    if (!events_.empty()) break;
    if (Clock::now() >= deadline) return std::nullopt;
    sleep_until(deadline);
  }
  auto event = std::move(events_.front());
  events_.pop_front();
  return event;
}

/// Comes before what fails because of it.
void GangLauncher::look_at_cluster() {
  if (cluster_ended_ || !cluster_end_ || !troupe::detail::is_ready(*cluster_end_)) return;
  cluster_ended_ = true;
  events_.push_back({.kind = GangEvent::Kind::ClusterEnded,
                     .text = troupe::detail::failure_of(*cluster_end_)->message});
}

void GangLauncher::step_all() {
  for (auto at = attempts_.begin(); at != attempts_.end();) at = step(at);
}

/// -> the one after it, which may have ended.
GangLauncher::Attempts::iterator GangLauncher::step(Attempts::iterator at) {
  std::optional<GangEvent> event;
  try {
    event = at->second->step();
  } catch (...) {
    event = failure_event(at->first, std::current_exception(), at->second->begun());
  }
  if (!event) return std::next(at);
  const bool is_over = is_last(*event);
  events_.push_back(*std::move(event));
  return is_over ? attempts_.erase(at) : std::next(at);
}

void GangLauncher::sleep_until(Clock::time_point deadline) const {
  std::vector<troupe::detail::ObjectPtr> objects;
  for (const auto& [trial, attempt] : attempts_) {
    attempt->collect(objects);
    if (const auto at = attempt->look_again()) deadline = std::min(deadline, *at);
  }
  if (cluster_end_ && !cluster_ended_) objects.push_back(cluster_end_);
  // It is in no cluster, and nothing runs.
  if (objects.empty()) return std::this_thread::sleep_until(deadline);
  troupe::detail::wait_for_any(objects, deadline, troupe::detail::CpuMeanwhile::Kept);
}

void GangLauncher::answer(TrialId trial, std::int64_t /*k*/, Verdict verdict) {
  if (const auto at = attempts_.find(trial); at != attempts_.end()) at->second->answer(verdict);
}

void GangLauncher::replace(const Launch& launch, std::int64_t /*k*/) {
  if (const auto at = attempts_.find(launch.trial); at != attempts_.end())
    at->second->replace(work_of_(launch));
}

void GangLauncher::end(TrialId trial) {
  if (attempts_.erase(trial) == 0) return;  // its last event is on its way
  events_.push_back(ended_by_search(trial));
}

}  // namespace troupe::tune
