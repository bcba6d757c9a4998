#include "run/launch/gang_launcher.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "run/fault.hpp"
#include "run/launch/gang_attempt.hpp"
#include "run/launch/where.hpp"

namespace troupe::tune {
namespace {

constexpr std::chrono::milliseconds kUntilQuestion{500};
constexpr std::chrono::seconds kForAnswer{5};
constexpr std::chrono::seconds kForSigns{2};

}  // namespace

GangLauncher::GangLauncher(detail::AskForWorkers ask_for_workers,
                           std::function<detail::Work(const Launch&)> work_of, Seconds already,
                           std::string output_file)
    : ask_for_workers_{std::move(ask_for_workers)},
      work_of_{std::move(work_of)},
      already_{already},
      output_file_{std::move(output_file)} {}

GangLauncher::~GangLauncher() = default;

void GangLauncher::launch(const Launch& launch) {
  try {
    auto work = work_of_(launch);
    auto workers = ask_for_workers_(work);
    attempts_[launch.trial] = std::make_unique<GangAttempt>(
        launch.trial, std::move(work), std::move(workers), origins_, nodes_, slots_);
  } catch (...) {
    events_.push_back(failure_event(launch.trial, std::current_exception(), false));
  }
}

std::optional<GangEvent> GangLauncher::wait(Seconds timeout) {
  const auto deadline = Clock::now() + std::chrono::ceil<Clock::duration>(timeout);
  while (events_.empty()) {
    look_at_all();
    if (!events_.empty()) break;
    if (Clock::now() >= deadline) return std::nullopt;
    sleep_until(deadline);
  }
  return take_first();
}

GangEvent GangLauncher::take_first() {
  auto event = std::move(events_.front());
  events_.pop_front();
  return event;
}

/// Comes to an end: a gang that has reported waits for its answer.
std::optional<GangEvent> GangLauncher::at_hand() {
  if (events_.empty()) look_at_all();
  if (events_.empty()) return std::nullopt;
  return take_first();
}

/// Comes before what fails because of it.
void GangLauncher::look_at_cluster() {
  if (cluster_ended_ || !cluster_end_ || !troupe::detail::is_ready(*cluster_end_)) return;
  cluster_ended_ = true;
  events_.push_back({.kind = GangEvent::Kind::ClusterEnded,
                     .text = troupe::detail::failure_of(*cluster_end_)->message});
}

void GangLauncher::look_at_all() {
  look_at_cluster();
  release_held();
  say_where();
  for (auto at = attempts_.begin(); at != attempts_.end();) at = step(at);
}

void GangLauncher::tell_or_hold(GangEvent event) {
  const bool may_be_the_end =
      event.kind == GangEvent::Kind::Failed && event.lost && cluster_end_ && !cluster_ended_;
  if (!may_be_the_end) return events_.push_back(std::move(event));
  held_.push_back({std::move(event), Clock::now() + kUntilQuestion, nullptr});
}

bool GangLauncher::is_to_wait(Held& held) const {
  const auto now = Clock::now();
  if (cluster_ended_) return false;
  if (now < held.ask_at) return true;
  if (!held.answer) held.answer = troupe::detail::ask_for_nodes();
  return held.answer && !troupe::detail::is_ready(*held.answer) && now < held.ask_at + kForAnswer;
}

void GangLauncher::release_held() {
  while (!held_.empty() && !is_to_wait(held_.front())) {
    // A question that failed with the cluster did so after its end was there to be seen.
    look_at_cluster();
    events_.push_back(std::move(held_.front().event));
    held_.pop_front();
  }
}

bool GangLauncher::tell_where(TrialId trial, const std::string& what) {
  const auto at = attempts_.find(trial);
  if (at == attempts_.end()) return false;
  const auto& attempt = *at->second;
  where_.push_back({.trial = trial,
                    .what = what,
                    .places = attempt.places(),
                    .first_has_returned = attempt.first_rank_has_returned(),
                    .folder = attempt.folder(),
                    .signs = attempt.ask_for_signs(),
                    .until = Clock::now() + kForSigns});
  return true;
}

/// Of each rank of a trial with this folder.
std::vector<std::filesystem::path> GangLauncher::output_files(const std::filesystem::path& folder,
                                                              std::size_t ranks) const {
  std::vector<std::filesystem::path> files;
  for (std::size_t rank = 0; !output_file_.empty() && rank < ranks; ++rank)
    files.push_back(folder / fmt::format(fmt::runtime(output_file_), rank));
  return files;
}

void GangLauncher::say_where() {
  while (!where_.empty()) {
    const auto& [trial, what, places, first_has_returned, folder, signs, until] = where_.front();
    const bool is_to_wait = signs && !troupe::detail::is_ready(*signs) && Clock::now() < until;
    if (is_to_wait) return;
    const auto stands = where_it_stands(places, troupe::detail::signs_in(signs), first_has_returned,
                                        output_files(folder, places.size()));
    events_.push_back({.kind = GangEvent::Kind::Notice,
                       .trial = trial,
                       .text = what + (stands.empty() ? "" : ": " + stands)});
    where_.pop_front();
  }
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
  tell_or_hold(*std::move(event));
  return is_over ? attempts_.erase(at) : std::next(at);
}

void GangLauncher::sleep_until(Clock::time_point deadline) const {
  std::vector<troupe::detail::ObjectPtr> objects;
  for (const auto& [trial, attempt] : attempts_) {
    attempt->collect(objects);
    if (const auto at = attempt->look_again()) deadline = std::min(deadline, *at);
  }
  if (cluster_end_ && !cluster_ended_) objects.push_back(cluster_end_);
  if (!where_.empty()) {
    if (const auto& signs = where_.front().signs) objects.push_back(signs);
    deadline = std::min(deadline, where_.front().until);
  }
  if (!held_.empty()) {
    const auto& [event, ask_at, answer] = held_.front();
    if (answer) objects.push_back(answer);
    deadline = std::min(deadline, answer ? ask_at + kForAnswer : ask_at);
  }
  // It is in no cluster, and nothing runs.
  if (objects.empty()) return std::this_thread::sleep_until(deadline);
  troupe::detail::wait_for_any(objects, deadline);
}

std::optional<InUse> GangLauncher::in_use() {
  InUse in_use;
  for (const auto& [trial, attempt] : attempts_) attempt->add_to(in_use);
  nodes_.add_totals(in_use);
  return in_use;
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

void GangLauncher::tell_to_end(TrialId trial) {
  const auto at = attempts_.find(trial);
  if (at != attempts_.end() && !at->second->tell_to_end()) end(trial);
}

}  // namespace troupe::tune
