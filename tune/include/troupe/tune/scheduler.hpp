#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/trainable.hpp>
#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

enum class Mode : std::uint8_t { Min, Max };
inline constexpr auto Min = Mode::Min;
inline constexpr auto Max = Mode::Max;

/// What a run looks for: the lowest or the highest value of one reported metric.
struct Objective {
  std::string metric = {};
  Mode mode = Mode::Min;

  /// The value in `metrics`, if it is there.
  std::optional<double> value_in(const Metrics& metrics) const;
  /// Higher is better; what is not finite is the worst there is, minus infinity.
  double score(double value) const;
  /// True if `value` is strictly better than `than`.
  bool better(double value, double than) const { return score(value) > score(than); }
};

/// What becomes of a trial after a report, and why.
struct Decision {
  enum class Action : std::uint8_t {
    Continue,
    Stop,    ///< it is not worth going on
    Finish,  ///< it has trained for as long as a trial may
  };
  Action action = Action::Continue;
  std::string reason = {};       ///< a sentence for people; may be empty for Continue
  std::optional<int> rung = {};  ///< in which it was judged
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// One rung at the moment, for the summary.
struct RungSummary {
  int bracket = 0;
  int rung = 0;                       ///< 0 is the lowest of the bracket
  std::int64_t t = 0;                 ///< reports that a trial has made when it is judged here
  std::size_t reached = 0;            ///< trials that were judged here
  std::size_t stopped = 0;            ///< of them, for a value worse than the cutoff
  std::size_t not_finite = 0;         ///< of them, for a value that was nan or infinite
  std::optional<double> cutoff = {};  ///< which the next trial has to meet; none while nobody was judged
};

/// Judges reports. Pure like a Searcher, and used like one. Trials report t = 1, 2, ...; a report with a t not above the
/// trial's last one is a repetition, changes nothing and is answered Continue.
class TrialScheduler {
 public:
  virtual ~TrialScheduler() = default;

  virtual Decision on_report(TrialId trial, std::int64_t t, const Metrics& metrics) = 0;
  /// The trial makes no further report.
  virtual void on_end(TrialId trial) = 0;
  virtual std::vector<RungSummary> rungs() const { return {}; }

  virtual std::string save() const = 0;
  virtual void load(std::string_view saved) = 0;  ///< throws std::invalid_argument if another scheduler wrote it
};

using SchedulerFactory = std::function<std::unique_ptr<TrialScheduler>(const Objective& objective, std::uint64_t seed)>;

/// Lets every trial run to its end.
SchedulerFactory fifo();

}  // namespace troupe::tune
