#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/tune/searcher.hpp>

namespace troupe::tune {

/// How a trial stands for TPE. What comes first is better.
enum class TpeStanding : std::uint8_t {
  Complete,  ///< it ran to its end, and has a value
  Stopped,   ///< by the scheduler, and has a value
  Failed,    ///< errored, or without a finite value
  Running,
};

struct TpeTrial {
  std::vector<double> point = {};  ///< a coordinate for each axis
  TpeStanding standing = TpeStanding::Running;
  double loss = 0;     ///< of Complete and Stopped; lower is better
  std::int64_t t = 0;  ///< reports that it made
};

/// How many of the trials that are over count as good: the part `gamma` of them, rounded up, and
/// `most` at most.
std::size_t good_count(std::size_t finished, double gamma, std::size_t most);

/// The trials of a TPE search by number, ranked by how good they are, and sorted by each
/// coordinate. A value type; an insertion costs O(trials) moves of four bytes.
class TpeHistory {
 public:
  using Number = std::uint32_t;

  explicit TpeHistory(std::size_t axes) : sorted_(axes) {}

  /// Trial trials().size() runs at this point.
  void begin(std::vector<double> point);
  /// It is over. Asserts that it ran.
  void end(TrialId trial, TpeStanding standing, double loss, std::int64_t t);

  const std::vector<TpeTrial>& trials() const { return trials_; }
  std::size_t finished() const { return ranked_.size(); }
  /// Of an axis: every trial's number, by its coordinate and then by number.
  const std::vector<Number>& sorted(std::size_t axis) const { return sorted_[axis]; }

  struct Split {
    std::vector<Number> good;  ///< in order of number
    std::vector<Number> bad;
  };
  /// The best `good` of the trials that are over and did not fail; bad is the rest, with those that
  /// run or without.
  Split split(std::size_t good, bool running_are_bad) const;

 private:
  bool ranks_before(Number left, Number right) const;

  std::vector<TpeTrial> trials_;
  std::vector<Number> ranked_;  // that are over, the best first
  std::vector<std::vector<Number>> sorted_;
};

}  // namespace troupe::tune
