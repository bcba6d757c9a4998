#include <troupe/detail/trainable/trial_session.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <troupe/detail/failure.hpp>

#include "session/trainable/debugger.hpp"
#include "session/trainable/run_gang.hpp"

namespace troupe::detail {
namespace {

using namespace std::chrono_literals;

// How long a thread looks for what the other one or the driver says before it sleeps: to sleep and
// to be woken takes both threads longer than most drivers take to judge a report. It yields its
// core meanwhile.
constexpr auto kLook = 50us;
// How often a wait for rank 0 looks whether the run was given up.
constexpr auto kRendezvousSlice = 2s;
// So that whoever waits there has seen that it is over.
constexpr auto kFarewell = kRendezvousSlice + 1s;

// What rank 0 answers a report with.
constexpr auto* kGoOn = "continue";
constexpr auto* kStop = "stop";
constexpr auto* kReturned = "has returned";  // these two: it makes no such report any more
constexpr auto* kThrew = "has thrown an exception";

/// Counts the reports that rank 0 was answered, with the last answer.
constexpr auto* kVerdicts = "verdicts";

/// Of the gang in which the function runs, as far as can be told: what breaks it is known to it,
/// and of a communicator that a rank has left no process's end is told.
bool is_of_own_gang(const Failure& failure, const GangContext& gang) {
  return failure.kind == Failure::Kind::GangBroken &&
         (gang.broken().load(std::memory_order_acquire) != 0 ||
          (failure.signal == 0 && failure.exit_code == 0));
}

/// The exception in flight, as of this place: whoever asks for it later is a method of the runtime.
/// That the function's own gang is broken stays GangBroken, since another rank is to blame.
std::exception_ptr as_thrown_by(const std::string& place, const GangContext& gang) {
  auto failure = current_failure(place);
  if (!is_of_own_gang(failure, gang)) failure = current_failure_of_user(place);
  try {
    raise(failure);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

/// The function's side, and what both sides share.
class TrialSession::Core final : public Member {
 public:
  Core(GangContext& gang, RunInfo info, std::uint32_t run)
      : gang_(run > 1 ? later_.emplace(gang, run) : gang), info_(std::move(info)) {
    watch_ = gang_.on_broken([this] {
      // Who is about to wait has looked at the gang before, or sleeps by now.
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }

  GangContext& gang() override { return gang_; }
  Verdict report(const Metrics& metrics, const std::filesystem::path& checkpoint) override;
  const std::filesystem::path& storage() const override { return info_.storage; }
  const std::filesystem::path& restore_from() const override { return info_.restore_from; }
  bool reconfigured() const override { return info_.reconfigured; }
  std::uint64_t seed() const override { return info_.seed; }
  const ContextSettings& settings() const override { return info_.settings; }
  bool shows_progress() const override {
    return info_.progress_every.count() > 0 && gang_.rank() == 0;
  }
  void progress(const TrainingProgress& now) override;
  void effective_batch(std::int64_t rows) override {
    const std::lock_guard lock(mutex_);
    effective_batch_ = rows;
  }

  void run(std::string_view name, const std::function<void(Member&)>& body);
  TrialEvent next(std::optional<Verdict> verdict);
  void finish();
  /// -> whether the function ended in time.
  bool abandon();

 private:
  [[noreturn]] void raise_broken() const;
  /// Throws where nobody waits for this function any more: GangBroken, or Stopped.
  void check_waited_for();
  /// Returns once `condition` holds, or it is `until`; throws GangBroken as soon as the gang is.
  /// -> whether `condition` holds.
  template <class Condition>
  bool wait(std::unique_lock<std::mutex>& lock, Condition condition,
            std::optional<std::chrono::steady_clock::time_point> until = {});
  /// Waits for a report or the function's end, -> true, or for news of its progress.
  bool wait_for_event(std::unique_lock<std::mutex>& lock);
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  Verdict judged_by_driver(TrialEvent event);
  Verdict judged_by_rank_0(std::uint64_t report);
  void say_last_report(const char* end);

  std::optional<RunGang> later_;  ///< of a later run than the first
  GangContext& gang_;             ///< as this run sees it
  const RunInfo info_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  std::uint64_t judged_ = 0;  ///< reports of rank 0 that were answered; its function's thread alone

  std::mutex mutex_;  ///< guards everything below
  std::condition_variable changed_;
  std::optional<TrialEvent> event_;  ///< reported, not handed out yet
  std::optional<Verdict> verdict_;   ///< given, not taken yet
  std::uint64_t reports_ = 0;
  bool judging_ = false;  ///< handed out, no verdict yet
  bool stopped_ = false;  ///< Stop was given
  bool returned_ = false;
  bool ended_ = false;
  bool abandoned_ = false;
  std::exception_ptr error_;
  std::int64_t effective_batch_ = 0;
  std::optional<TrainingProgress> progress_;  ///< the last that was told, not handed out yet
  /// Before that none is handed out alone.
  std::chrono::steady_clock::time_point next_progress_{};

  std::shared_ptr<void> watch_;  ///< of the gang's breaking; ends before what it touches
};

void TrialSession::Core::raise_broken() const {
  auto failure = gang_.why_broken();
  failure.kind = Failure::Kind::GangBroken;
  raise(failure);
}

void TrialSession::Core::check_waited_for() {
  if (gang_.broken().load(std::memory_order_acquire) != 0) raise_broken();
  const std::lock_guard lock(mutex_);
  if (abandoned_) throw Stopped();
}

template <class Condition>
bool TrialSession::Core::wait(std::unique_lock<std::mutex>& lock, Condition condition,
                              std::optional<std::chrono::steady_clock::time_point> until) {
  const auto sleeps_at = std::chrono::steady_clock::now() + kLook;
  while (!condition()) {
    if (gang_.broken().load(std::memory_order_acquire) != 0) raise_broken();
    const auto now = std::chrono::steady_clock::now();
    if (until && now >= *until) return false;
    if (now >= sleeps_at) {
      if (until)
        changed_.wait_until(lock, *until);
      else
        changed_.wait(lock);
      continue;
    }
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  return true;
}

// Nobody is woken by what the function tells, which may be every few microseconds: this thread
// looks for it now and then.
bool TrialSession::Core::wait_for_event(std::unique_lock<std::mutex>& lock) {
  const auto has_come = [&] { return event_.has_value() || ended_; };
  if (!shows_progress()) return wait(lock, has_come);
  while (!wait(lock, has_come, next_progress_)) {
    next_progress_ = std::chrono::steady_clock::now() + info_.progress_every;
    if (progress_) return false;
  }
  return true;
}

void TrialSession::Core::progress(const TrainingProgress& now) {
  if (!shows_progress()) return;
  const std::lock_guard lock(mutex_);
  progress_ = now;
}

void TrialSession::Core::run(std::string_view name, const std::function<void(Member&)>& body) {
  bool returned = false;
  std::exception_ptr error;
  const auto self = ::getpid();
  try {
    wait_for_debugger(gang_, info_, name, [this] { check_waited_for(); });
    body(*this);
    returned = true;
  } catch (const Stopped&) {
    // The function went on after Stop; it is over all the same.
  } catch (...) {
    error = as_thrown_by(fmt::format("{}, rank {} of {}, pid {} on node {}", name, gang_.rank(),
                                     gang_.size(), ::getpid(), gang_.node()),
                         gang_);
  }
  if (::getpid() != self) ::_exit(0);  // a copy that the function has forked: it is no rank
  say_last_report(error ? kThrew : kReturned);
  const std::lock_guard lock(mutex_);
  returned_ = returned;
  error_ = error;
  ended_ = true;
  changed_.notify_all();
}

TrialEvent TrialSession::Core::next(std::optional<Verdict> verdict) {
  std::unique_lock lock(mutex_);
  if (judging_ != verdict.has_value()) {
    throw std::logic_error(judging_ ? "the last report waits for its verdict"
                                    : "no report waits for a verdict");
  }
  if (verdict) {
    judging_ = false;
    verdict_ = verdict;
    stopped_ = stopped_ || *verdict == Verdict::Stop;
    changed_.notify_all();
  }
  const bool is_event = wait_for_event(lock);
  TrialEvent next{.elapsed_s = elapsed_s()};
  if (!is_event) {
    next.kind = TrialEvent::Kind::Progress;
  } else if (event_) {
    judging_ = true;
    next = *std::exchange(event_, std::nullopt);
  } else {
    if (error_) std::rethrow_exception(error_);
    next.kind = TrialEvent::Kind::Finished;
    next.index = reports_;
    next.stopped = stopped_;
    next.returned = returned_;
    next.effective_batch = effective_batch_;
  }
  next.progress = std::exchange(progress_, std::nullopt);
  return next;
}

void TrialSession::Core::finish() {
  std::unique_lock lock(mutex_);
  wait(lock, [&] { return ended_; });
  if (error_) std::rethrow_exception(error_);
}

bool TrialSession::Core::abandon() {
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, kFarewell, [&] { return ended_; });
}

Verdict TrialSession::Core::report(const Metrics& metrics,
                                   const std::filesystem::path& checkpoint) {
  TrialEvent event{.kind = TrialEvent::Kind::Report, .elapsed_s = elapsed_s()};
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || abandoned_) throw Stopped();
    event.index = reports_++;
  }
  const auto report = event.index;
  if (gang_.rank() != 0) return judged_by_rank_0(report);
  event.metrics = metrics;
  event.checkpoint = checkpoint;
  const auto verdict = judged_by_driver(std::move(event));
  judged_ = report + 1;
  if (gang_.size() > 1)
    gang_.rendezvous().advance(kVerdicts, judged_, verdict == Verdict::Stop ? kStop : kGoOn);
  return verdict;
}

Verdict TrialSession::Core::judged_by_driver(TrialEvent event) {
  std::unique_lock lock(mutex_);
  event_ = std::move(event);
  changed_.notify_all();
  wait(lock, [&] { return verdict_.has_value() || abandoned_; });
  if (abandoned_) throw Stopped();
  return *std::exchange(verdict_, std::nullopt);
}

Verdict TrialSession::Core::judged_by_rank_0(std::uint64_t report) {
  for (;;) {
    if (gang_.broken().load(std::memory_order_acquire) != 0) raise_broken();
    std::optional<std::string> answer;
    try {
      answer = gang_.rendezvous().await(kVerdicts, report + 1, kRendezvousSlice);
    } catch (const TimedOut&) {
      // Rank 0 has not been judged yet.
    }
    const std::lock_guard lock(mutex_);
    if (abandoned_) throw Stopped();
    if (!answer) continue;
    if (*answer == kReturned || *answer == kThrew) {
      raise({.kind = Failure::Kind::GangBroken,
             .message = fmt::format("the function of rank 0 {}; rank {} waits in report {}",
                                    *answer, gang_.rank(), reports_ - 1)});
    }
    stopped_ = *answer == kStop;
    return stopped_ ? Verdict::Stop : Verdict::Continue;
  }
}

// The others may wait in a report that rank 0 does not come to. After Stop they wait for none.
void TrialSession::Core::say_last_report(const char* end) {
  if (gang_.rank() != 0 || gang_.size() == 1) return;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
  }
  try {
    gang_.rendezvous().advance(kVerdicts, judged_ + 1, end);
  } catch (const Error&) {
    // The gang is broken, which they see for themselves.
  }
}

TrialSession::TrialSession(GangContext& gang, RunInfo info, std::uint32_t run)
    : core_(std::make_shared<Core>(gang, std::move(info), run)) {}

TrialSession::~TrialSession() {
  if (!thread_.joinable()) return;
  if (core_->abandon()) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void TrialSession::start(std::string_view name, std::function<void(Member&)> body) {
  if (thread_.joinable()) throw std::logic_error("a trainable is started once");
  thread_ = std::thread([core = core_, name, body = std::move(body), use = cpu_use()] {
    const CpuUser user(use);
    core->run(name, body);
  });
}

TrialEvent TrialSession::next(std::optional<Verdict> verdict) { return core_->next(verdict); }
void TrialSession::finish() { core_->finish(); }

}  // namespace troupe::detail
