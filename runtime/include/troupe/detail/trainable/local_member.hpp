#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <troupe/detail/trainable/trial_session.hpp>
#include <troupe/gang_context.hpp>
#include <troupe/trainable.hpp>

/// A trainable without a cluster: a gang of one in this process, for a debugger.
namespace troupe::detail {

/// A rendezvous of threads of one process.
class LocalRendezvous final : public Rendezvous {
 public:
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, std::chrono::milliseconds timeout) override;

 private:
  std::mutex mutex_;  ///< guards values_
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
};

/// A gang of one, which never breaks.
class LocalGang final : public GangContext {
 public:
  std::uint64_t id() const override { return 0; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  int node_rank() const override { return 0; }
  int node_count() const override { return 1; }
  std::vector<int> node_ranks() const override { return {0}; }
  std::uint32_t node() const override { return 0; }
  std::string host() const override { return "127.0.0.1"; }
  Rendezvous& rendezvous() override { return rendezvous_; }
  const std::atomic<std::uint32_t>& broken() const override { return broken_; }
  Failure why_broken() const override { return {}; }
  std::shared_ptr<void> on_broken(std::function<void()> /*then*/) override { return nullptr; }

 private:
  LocalRendezvous rendezvous_;
  std::atomic<std::uint32_t> broken_ = 0;
};

/// Judges reports on the spot, on the thread that runs the function and has made this. What the
/// function tells of its progress goes to the judge, too, with the next report or the end, or, if
/// that thread tells it, in an event of kind Progress, at most every RunInfo::progress_every; the
/// verdict on such an event is ignored.
class LocalMember final : public Member {
 public:
  using Judge = std::function<Verdict(const TrialEvent&)>;
  /// `judge` empty: always Continue.
  LocalMember(RunInfo info, Judge judge);

  GangContext& gang() override { return gang_; }
  Verdict report(const Metrics& metrics, const std::filesystem::path& checkpoint) override;
  const std::filesystem::path& storage() const override { return info_.storage; }
  const std::filesystem::path& restore_from() const override { return info_.restore_from; }
  bool reconfigured() const override { return info_.reconfigured; }
  std::uint64_t seed() const override { return info_.seed; }
  const ContextSettings& settings() const override { return info_.settings; }
  bool shows_progress() const override { return judge_ && info_.progress_every.count() > 0; }
  void progress(const TrainingProgress& now) override;
  void effective_batch(std::int64_t rows) override { effective_batch_ = rows; }

  std::uint64_t reports() const { return reports_; }
  bool stopped() const { return stopped_; }
  std::int64_t effective_batch() const { return effective_batch_; }
  double elapsed_s() const;
  /// What was told since the last event.
  std::optional<TrainingProgress> take_progress();

 private:
  LocalGang gang_;
  RunInfo info_;
  Judge judge_;
  std::uint64_t reports_ = 0;
  bool stopped_ = false;
  std::atomic<std::int64_t> effective_batch_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_progress_ = began_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;  ///< guards what follows
  std::optional<TrainingProgress> progress_;
};

}  // namespace troupe::detail
