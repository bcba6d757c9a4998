#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/detail/trainable_worker.hpp>
#include <troupe/gang.hpp>

/// The driver's end of one run of a trainable. train::run has one, tune::run one for each trial that is under way.
namespace troupe::detail {

/// Throws the failure to blame among those of a run: a rank's own error or death rather than that the gang is broken,
/// which its other ranks report. Waits up to `patience` for the better one.
[[noreturn]] void raise_cause(const std::vector<ObjectPtr>& refs, std::chrono::milliseconds patience);
/// True if it has failed; false if it has a value, or neither yet.
bool has_failed(const ObjectPtr& ref);

/// Starts F on every rank of a gang, and hands out what rank 0 reports, one report at a time. Used by one thread.
///
///   TrialRun<f> run(gang);
///   for (auto event = run.wait(); event.kind == Kind::Report; event = run.wait()) run.answer(verdict on event);
///   auto value = run.result();
///
/// Another run in the processes of the same gang is another TrialRun, made once this one's result() is over and
/// TrainableWorker::renew was called on every rank.
///
/// With several runs: collect() what they wait for, wait_objects() on all of it, then poll() each.
template <auto F>
class TrialRun {
 public:
  using Worker = TrainableWorker<F>;

  /// The gang's workers are not started yet: they are TrainableWorker<F>(config, info), or have been renewed since.
  explicit TrialRun(Gang<Worker> gang) : gang_(std::move(gang)) {
    for (const auto& start : gang_.template all<&Worker::start>()) starts_.push_back(object_of(start));
    for (std::size_t rank = 1; rank < gang_.size(); ++rank) {
      others_.push_back(object_of(gang_.rank(rank).template call<&Worker::finish>()));
    }
    ask(std::nullopt);
  }

  const Gang<Worker>& gang() const { return gang_; }

  /// The next event, if it is there. After a report nothing follows until answer(). Throws the first error of any rank.
  std::optional<TrialEvent> poll() {
    watch_others();
    if (!pending_ || !pending_.ready()) return std::nullopt;
    if (has_failed(object_of(pending_))) raise_cause(watched(), kPatience);
    return std::exchange(pending_, {}).get();
  }

  /// Likewise, waiting for it.
  TrialEvent wait() {
    if (!pending_) throw std::logic_error("the last report waits for its verdict, or the run has finished");
    for (;;) {
      if (auto event = poll()) return *std::move(event);
      wait_objects(watched(), 1, std::nullopt);
    }
  }

  /// The verdict on the report that was handed out last.
  void answer(Verdict verdict) { ask(verdict); }

  /// Adds what poll() waits for.
  void collect(std::vector<ObjectPtr>& objects) const {
    for (auto& object : watched()) objects.push_back(std::move(object));
  }

  /// Rank 0's value, once it has finished: waits until the other ranks have, too. Throws the first error of any rank,
  /// or TaskError (std::logic_error) where the function was stopped before it returned.
  trainable_result<F> result() {
    while (!others_.empty()) {
      watch_others();
      if (!others_.empty()) wait_objects(others_, 1, std::nullopt);
    }
    return gang_.rank(0).template call<&Worker::result>().get();
  }

  /// Waits until no rank has a call of this run under way, whatever became of it: the function has ended everywhere, or the
  /// gang has.
  void settle() const {
    const auto objects = watched();
    wait_objects(objects, objects.size(), std::nullopt);
  }

  /// Whether the function is known to have begun on every rank. Until then a rank that dies did so before it.
  bool begun() const {
    return std::all_of(starts_.begin(), starts_.end(),
                       [](const ObjectPtr& start) { return is_ready(*start) && !has_failed(start); });
  }

  /// Ends every rank now. What the run waited for fails.
  void end() const { gang_.kill(); }

 private:
  static constexpr std::chrono::milliseconds kPatience{2000};

  void ask(std::optional<Verdict> verdict) { pending_ = gang_.rank(0).template call<&Worker::next>(verdict); }

  std::vector<ObjectPtr> watched() const {
    auto objects = others_;
    objects.insert(objects.end(), starts_.begin(), starts_.end());
    if (pending_) objects.push_back(object_of(pending_));
    return objects;
  }
  /// Those of the calls that are under way; throws for one that has failed.
  std::vector<ObjectPtr> still_running(const std::vector<ObjectPtr>& calls) const {
    std::vector<ObjectPtr> running;
    for (const auto& call : calls) {
      if (!is_ready(*call)) {
        running.push_back(call);
      } else if (has_failed(call)) {
        raise_cause(watched(), kPatience);
      }
    }
    return running;
  }
  /// Forgets the ranks that have begun, and those that have finished; throws for one that has failed.
  void watch_others() {
    starts_ = still_running(starts_);
    others_ = still_running(others_);
  }

  Gang<Worker> gang_;
  std::vector<ObjectPtr> starts_;  ///< of each rank, until it is known to have begun
  Ref<TrialEvent> pending_;
  std::vector<ObjectPtr> others_;  ///< an end for each rank but 0, until it is reached
};

}  // namespace troupe::detail
