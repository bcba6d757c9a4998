#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the cases of core_bench share: which are wanted, for how long, and how a figure is printed;
/// and the clock of other benchmarks.
namespace troupe::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The upper one where two are in the middle. `values` has one at least.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

struct Options {
  double seconds = 1;      ///< of each case that repeats, after one round to warm up
  bool json = false;       ///< a JSON line for each figure instead of a row
  bool smoke = false;      ///< sizes that take a moment: shows that a case runs, not how fast
  std::string only = "*";  ///< shell patterns, separated by commas; a case's name must match one
  unsigned seed = 1;       ///< of what is random
};

/// A figure of one case, as the peer's program measures it too: what is timed is repeated until the
/// time is over, at least four times, and the value is the mean of the rounds. Prints each figure
/// as soon as it is there. Lives in main.
class Report {
 public:
  explicit Report(Options options) : options_(std::move(options)) {}

  const Options& options() const { return options_; }
  bool smoke() const { return options_.smoke; }
  bool wants(std::string_view name) const;
  /// The names of all cases, once main has come by each, where `only` matched none of them; else
  /// empty.
  std::set<std::string> unmatched() const { return matched_ ? std::set<std::string>{} : asked_; }
  /// True if one of them is.
  bool wants_any(std::span<const std::string_view> names) const;
  bool wants_any(std::initializer_list<std::string_view> names) const {
    return wants_any(std::span(names));
  }

  void print(const std::string& name, double value, const std::string& unit,
             const std::string& note = {}) const;
  /// A case that cannot be run, and why: said, not left out.
  void missing(const std::string& name, const std::string& unit, const std::string& why) const;

  /// `round` does `amount` units of work.
  void rate(const std::string& name, const std::string& unit, double amount,
            const std::function<void()>& round) const;
  /// Where only a part of a round counts: it returns the seconds that did.
  void rate_of(const std::string& name, const std::string& unit, double amount,
               const std::function<double()>& round) const;
  /// `count` operations a round, one at a time: the rate, and percentiles over the operations of
  /// all rounds.
  void latency(const std::string& name, int count, const std::function<void()>& operation) const;

 private:
  /// The rate of each round.
  std::vector<double> repeat(double amount, const std::function<double()>& round) const;

  Options options_;
  mutable std::set<std::string> asked_;
  mutable bool matched_ = false;
};

/// Peer's sizes where it counts, small ones for a smoke run.
inline int sized(const Report& report, int full, int smoke) {
  return report.smoke() ? smoke : full;
}

}  // namespace troupe::bench
