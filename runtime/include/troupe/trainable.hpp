#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/gang_context.hpp>

/// What train::run and tune::run share: a function that reports while it runs, on every rank of a
/// gang.
namespace troupe {

struct Metric {
  std::string name;
  double value = 0;
  Metric() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number> Metric(const char* metric, Number number)
      : name(metric), value(static_cast<double>(number)) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, value);
  }
};

/// What a report holds: a list of names with values, `{{"loss", 0.5}, {"lr", 0.1}}`, that is also
/// filled by name, `metrics["loss"] = 0.5`. A name that stands in it twice counts with its last
/// value.
class Metrics : public std::vector<Metric> {
 public:
  using std::vector<Metric>::vector;
  using std::vector<Metric>::operator[];
  using std::vector<Metric>::at;

  /// The value of `name`, which is appended with 0 where it is not there. Valid until the next is.
  double& operator[](std::string_view name) {
    for (auto metric = rbegin(); metric != rend(); ++metric)
      if (metric->name == name) return metric->value;
    auto& made = emplace_back();
    made.name = name;
    return made.value;
  }
  /// The value of `name`. Throws std::out_of_range, which names it, where it is not there. Cost:
  /// linear.
  double at(std::string_view name) const {
    for (auto metric = rbegin(); metric != rend(); ++metric)
      if (metric->name == name) return metric->value;
    throw std::out_of_range("no metric is named '" + std::string(name) + "'");
  }
};

/// What a trainable has to do after a report.
enum class Verdict : std::uint8_t { Continue, Stop };

/// How far a trainable has come, as rank 0 tells it: for people to look at, so what is lost on the
/// way is lost. A value that crosses to the driver. What is timed leaves out the first step of the
/// run, which is slower than the others, and all that an earlier run did whose checkpoint this one
/// continues from.
struct TrainingProgress {
  std::int64_t epoch = 0;         ///< that is under way, from 1; 0: the function has none
  std::int64_t epochs = 0;        ///< 0: not known
  std::int64_t ended_epochs = 0;  ///< also by earlier runs
  std::int64_t done = 0;          ///< steps, of this epoch where there are epochs
  std::int64_t total = 0;         ///< of which `done` are done; 0: not known
  std::string unit = {};          ///< of both, in the plural: "steps"
  std::int64_t timed_steps = 0;   ///< in all epochs
  std::int64_t timed_rows = 0;    ///< of all ranks, in these steps; 0: not known
  double steps_s = 0;             ///< that these steps took
  std::int64_t gaps = 0;  ///< times without steps between the steps of two epochs: validation
  double gaps_s = 0;      ///< that these took
  std::int64_t timed_epochs = 0;  ///< that this run has begun and ended
  double epochs_s = 0;            ///< that these took
};

/// Options for the context of a trainable, as they travel from the driver to each rank. The module
/// of the context makes them and reads them (train::ContextOptions converts to this); the runtime
/// and tune pass them on unread.
struct ContextSettings {
  std::string type = {};   ///< of the options, for errors; empty: none were given
  std::string bytes = {};  ///< as that module encodes them
};

/// One rank of a trainable's gang, as its context sees it. The context type of a trainable
/// (train::Context, tune::Context) is constructible from a Member& that outlives it. Used by the
/// one thread that runs the trainable.
class Member {
 public:
  virtual ~Member() = default;
  virtual GangContext& gang() = 0;  ///< in a run without a cluster: a gang of one
  /// Every rank calls it equally often. Blocks until the k-th report of rank 0 is judged; all ranks
  /// get the same verdict for report k. Metrics and checkpoint (a directory; empty: none) count on
  /// rank 0 and are ignored elsewhere. Throws GangBroken once a rank has died, and if rank 0 has
  /// ended before its k-th report.
  virtual Verdict report(const Metrics& metrics, const std::filesystem::path& checkpoint) = 0;
  /// Directory of this run for checkpoints; empty: the run has none.
  virtual const std::filesystem::path& storage() const = 0;
  /// Whether that checkpoint was written with another configuration than this run has.
  virtual bool reconfigured() const = 0;
  /// Checkpoint directory to continue from; empty: start anew.
  virtual const std::filesystem::path& restore_from() const = 0;
  virtual std::uint64_t seed() const = 0;  ///< of this run, the same on every rank
  /// What the driver wants the context to be made with, the same on every rank; none by default.
  virtual const ContextSettings& settings() const {
    static const ContextSettings none;
    return none;
  }
  /// Whether somebody looks at what progress() is told: on rank 0 alone, and only where the driver
  /// asked for it. The same for as long as the run lasts.
  virtual bool shows_progress() const { return false; }
  /// Tells the driver how far the function is. Never waits for the driver, who gets what was told
  /// last, now and then. Any thread. Cost: a lock that nobody holds for long.
  virtual void progress(const TrainingProgress& /*now*/) {}
  /// How many rows all ranks together see in one step, for whoever sums the run up. Rank 0's last
  /// word counts. Any thread.
  virtual void effective_batch(std::int64_t /*rows*/) {}
};

}  // namespace troupe
