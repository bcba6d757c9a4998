#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <troupe/tune/detail/search.hpp>

/// What tune::simulate hands to the part of it that is no template.
namespace troupe::tune::detail {

struct World {
  std::vector<std::string> metrics = {};
  std::function<double(const Configuration&, std::int64_t t)> curve = {};
  /// In its place: of each metric.
  std::function<std::vector<double>(const Configuration&, std::int64_t t)> curves = {};
  std::function<Seconds(const Configuration&)> step = {};
  std::int64_t reports = 0;
  std::size_t gangs = 1;
  Seconds launch{0};
};

/// The best value so far changed.
struct Improvement {
  Seconds now{0};
  std::uint64_t steps = 0;  ///< that all trials had trained by then
  TrialId trial = 0;
  double value = 0;
};

/// How many trials make at least `t` reports.
struct Reached {
  std::int64_t t = 0;
  std::size_t trials = 0;
  friend bool operator==(const Reached&, const Reached&) = default;
};

/// What a preview counts.
struct PreviewNumbers {
  std::vector<Reached> reached = {};
  std::uint64_t steps = 0;
  std::uint64_t steps_unstopped = 0;
  std::uint64_t launches = 0;
  double busy = 0;
  std::vector<Improvement> improvements = {};
};

struct Simulated {
  Outcome outcome = {};
  PreviewNumbers numbers = {};
  std::vector<std::string> notices = {};
};

/// "  trials that reach each rung, and the end: t=1: 27, t=3: 9, t=9: 3\n"; empty where no rungs are.
std::string reached_text(const std::vector<Reached>& reached);
/// ", 243 if each trial came as far as the furthest"; empty where that is no more.
std::string unstopped_text(std::uint64_t steps, std::uint64_t steps_unstopped);
/// That its time is virtual, the summary of the run, and the numbers, a line each.
std::string preview_text(const std::string& summary, const PreviewNumbers& numbers);

/// Throws std::invalid_argument like search(), and for a world that can not be.
Simulated simulate(const Plan& plan, const World& world);

}  // namespace troupe::tune::detail
