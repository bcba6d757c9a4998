#include <troupe/detail/trainable/local_member.hpp>

#include <utility>

#include <fmt/format.h>

#include "api/bounded.hpp"

namespace troupe::detail {

void LocalRendezvous::set(std::string_view key, std::string_view value) {
  constexpr std::size_t most = 64 << 10;
  if (value.size() > most) {
    raise({.kind = Failure::Kind::TooLarge,
           .message = fmt::format("rendezvous key \"{}\": {} bytes, the limit is 65536", key,
                                  value.size())});
  }
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = values_.emplace(key, value);
  if (!fresh && at->second != value) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("rendezvous key \"{}\" has another value already", key)});
  }
  changed_.notify_all();
}

std::string LocalRendezvous::get(std::string_view key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  auto at = values_.end();
  if (!changed_.wait_for(lock, bounded(timeout),
                         [&] { return (at = values_.find(key)) != values_.end(); })) {
    raise({.kind = Failure::Kind::TimedOut,
           .message = fmt::format("nobody set the rendezvous key \"{}\" within {} ms", key,
                                  timeout.count())});
  }
  return at->second;
}

LocalMember::LocalMember(RunInfo info, Judge judge)
    : info_(std::move(info)), judge_(std::move(judge)) {}

double LocalMember::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

Verdict LocalMember::report(const Metrics& metrics, const std::filesystem::path& checkpoint) {
  if (stopped_) throw Stopped();
  TrialEvent event{.kind = TrialEvent::Kind::Report,
                   .index = reports_++,
                   .metrics = metrics,
                   .checkpoint = checkpoint};
  event.elapsed_s = elapsed_s();
  event.progress = take_progress();
  const auto verdict = judge_ ? judge_(event) : Verdict::Continue;
  stopped_ = verdict == Verdict::Stop;
  return verdict;
}

void LocalMember::progress(const TrainingProgress& now) {
  if (!shows_progress()) return;
  {
    const std::lock_guard lock(mutex_);
    progress_ = now;
  }
  if (std::this_thread::get_id() != thread_) return;
  const auto time = std::chrono::steady_clock::now();
  if (time < next_progress_) return;
  next_progress_ = time + info_.progress_every;
  TrialEvent event{.kind = TrialEvent::Kind::Progress};
  event.elapsed_s = elapsed_s();
  event.progress = take_progress();
  judge_(event);
}

std::optional<TrainingProgress> LocalMember::take_progress() {
  const std::lock_guard lock(mutex_);
  return std::exchange(progress_, std::nullopt);
}

}  // namespace troupe::detail
