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

struct Simulated {
  Outcome outcome = {};
  std::uint64_t steps = 0;
  std::uint64_t launches = 0;
  double busy = 0;
  std::vector<Improvement> improvements = {};
  std::vector<std::string> notices = {};
};

/// "  trained 243 steps in 80 launches; the places were busy 97 % of the time\n".
std::string budget_text(std::uint64_t steps, std::uint64_t launches, double busy);

/// Throws std::invalid_argument like search(), and for a world that can not be.
Simulated simulate(const Plan& plan, const World& world);

}  // namespace troupe::tune::detail
