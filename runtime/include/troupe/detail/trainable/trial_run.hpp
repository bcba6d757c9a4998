#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/detail/rank_calls.hpp>
#include <troupe/detail/trainable/trainable_worker.hpp>
#include <troupe/gang.hpp>

/// The driver's end of one run of a trainable. train::run has one, tune::run one for each trial
/// that is under way.
namespace troupe::detail {

/// The workers of one gang, as a run calls them, whatever function they run. Every call returns at
/// once.
class TrialRanks {
 public:
  virtual ~TrialRanks() = default;
  virtual std::size_t size() const = 0;
  virtual Ref<void> start(std::size_t rank) const = 0;
  virtual Ref<void> finish(std::size_t rank) const = 0;
  virtual Ref<TrialEvent> next(std::optional<Verdict> verdict) const = 0;  ///< of rank 0
};

/// One run on the ranks of a gang: starts the function on every rank, and hands out what rank 0
/// reports, one report at a time, and between them, where RunInfo asks for it, the progress of
/// rank 0. Used by one thread; never blocks. Whoever has several collect()s what they wait for,
/// waits for any of it or for the first look_again(), and poll()s each.
class RunProgress {
 public:
  /// The workers are not started yet: they are new, or have been renewed since their last run.
  /// `ranks` outlives this.
  explicit RunProgress(const TrialRanks& ranks);

  /// The next event, if it is there. After a report nothing follows until answer(). Throws the
  /// failure to blame among those of all ranks, up to two seconds after the first one.
  std::optional<TrialEvent> poll();
  /// The verdict on the report that was handed out last.
  void answer(Verdict verdict) { ask(verdict); }
  /// Whether the other ranks have finished too, which they do after rank 0. Throws as poll().
  bool is_over();
  /// Whether no rank has a call of this run under way, whatever became of it: the function has
  /// ended everywhere, or the gang has.
  bool is_settled() { return calls_.have_ended(); }
  /// For who wants nothing more of this run but its end: a report that comes is answered Stop, and
  /// a failure counts as an end. -> is_settled(). Not after a report that waits for its verdict.
  bool wind_up();
  /// Whether an event is to come: false after a report that waits for its verdict, and after the
  /// last event.
  bool expects_event() const { return static_cast<bool>(pending_); }
  /// Whether the function is known to have begun on every rank. Until then a rank that dies did so
  /// before it.
  bool begun() const;

  void collect(std::vector<ObjectPtr>& objects) const { calls_.collect(objects); }
  std::optional<RankCalls::TimePoint> look_again() const { return calls_.look_again(); }

 private:
  void ask(std::optional<Verdict> verdict);

  const TrialRanks& ranks_;
  RankCalls calls_;                ///< all of the below, until they have come
  std::vector<ObjectPtr> starts_;  ///< of each rank
  std::vector<ObjectPtr> others_;  ///< an end for each rank but 0
  Ref<TrialEvent> pending_;
};

/// The ranks of a gang of TrainableWorker<F>.
template <auto F>
class RanksOf final : public TrialRanks {
 public:
  using Worker = TrainableWorker<F>;
  explicit RanksOf(Gang<Worker> gang) : gang_(std::move(gang)) {}
  const Gang<Worker>& gang() const { return gang_; }

  std::size_t size() const override { return gang_.size(); }
  Ref<void> start(std::size_t rank) const override {
    return gang_.rank(rank).template call<&Worker::start>();
  }
  Ref<void> finish(std::size_t rank) const override {
    return gang_.rank(rank).template call<&Worker::finish>();
  }
  Ref<TrialEvent> next(std::optional<Verdict> verdict) const override {
    return gang_.rank(0).template call<&Worker::next>(verdict);
  }

 private:
  const Gang<Worker> gang_;
};

/// One run of F in a gang, for a thread that waits for it alone.
///
///   TrialRun<f> run(gang);
///   for (auto event = run.wait(); event.kind != Kind::Finished; event = run.wait()) {
///     if (event.kind == Kind::Report) run.answer(verdict on event);
///   }
///   auto value = run.result();
///
/// Another run in the processes of the same gang is another TrialRun, made once this one's result()
/// is over and TrainableWorker::renew was called on every rank.
template <auto F>
class TrialRun {
 public:
  using Worker = TrainableWorker<F>;

  /// The gang's workers are not started yet: they are TrainableWorker<F>(config, info), or have
  /// been renewed since.
  explicit TrialRun(Gang<Worker> gang)
      : ranks_(std::make_unique<RanksOf<F>>(std::move(gang))),
        progress_(std::make_unique<RunProgress>(*ranks_)) {}

  const Gang<Worker>& gang() const { return ranks_->gang(); }
  RunProgress& progress() { return *progress_; }

  using TimePoint = RankCalls::TimePoint;

  /// The next event: waits for it. Throws as RunProgress::poll().
  TrialEvent wait() { return *wait_until(std::nullopt); }
  /// The same, but waits no longer than that.
  std::optional<TrialEvent> wait_until(std::optional<TimePoint> until) {
    if (!progress_->expects_event())
      throw std::logic_error("the last report waits for its verdict, or the run has finished");
    for (;;) {
      auto event = progress_->poll();
      if (event || (until && std::chrono::steady_clock::now() >= *until)) return event;
      wait_for_more(until);
    }
  }

  /// The verdict on the report that was handed out last.
  void answer(Verdict verdict) { progress_->answer(verdict); }

  /// Waits until the other ranks have finished too, once rank 0 has. Throws the first error of any
  /// rank; a rank that was stopped before it returned has none.
  void wait_for_others() {
    while (!progress_->is_over()) wait_for_more();
  }

  /// Rank 0's value: waits as wait_for_others(), and throws as it does, or TaskError
  /// (std::logic_error) where the function was stopped before it returned.
  trainable_result<F> result() {
    wait_for_others();
    return gang().rank(0).template call<&Worker::result>().get();
  }

  /// Whether the function is known to have begun on every rank.
  bool begun() const { return progress_->begun(); }

 private:
  void wait_for_more(std::optional<TimePoint> until = std::nullopt) {
    std::vector<ObjectPtr> objects;
    progress_->collect(objects);
    auto look = progress_->look_again();
    if (until && (!look || *until < *look)) look = until;
    wait_for_any(objects, look);
  }

  std::unique_ptr<const RanksOf<F>> ranks_;
  std::unique_ptr<RunProgress> progress_;
};

}  // namespace troupe::detail
