#include "schedulers/rungs.hpp"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::tune {

void check(const AshaOptions& options) {
  if (options.max_t < 1 || options.eta < 2 || options.grace < 1 || options.brackets < 1) {
    throw std::invalid_argument(fmt::format(
        "asha: max_t {}, eta {}, grace {}, brackets {}: eta is at least 2, the others at least 1",
        options.max_t, options.eta, options.grace, options.brackets));
  }
  if (options.grace > options.max_t) {
    throw std::invalid_argument(fmt::format(
        "asha: grace {} is more than max_t {}, so that no trial would make the reports after which "
        "it is first judged",
        options.grace, options.max_t));
  }
}

std::vector<std::int64_t> rung_times(const AshaOptions& options) {
  std::vector<std::int64_t> times;
  for (auto t = options.grace; t < options.max_t; t *= options.eta) {
    times.push_back(t);
    if (t > options.max_t / options.eta) break;
  }
  return times;
}

std::vector<std::vector<std::int64_t>> bracket_times(const AshaOptions& options) {
  const auto times = rung_times(options);
  const auto brackets = static_cast<std::size_t>(options.brackets);
  if (brackets > 1 && brackets > times.size()) {
    throw std::invalid_argument(
        fmt::format("asha: {} brackets, but max_t {}, eta {} and grace {} make {} rungs only",
                    options.brackets, options.max_t, options.eta, options.grace, times.size()));
  }
  std::vector<std::vector<std::int64_t>> all;
  for (std::size_t lowest = 0; lowest < brackets; ++lowest)
    all.emplace_back(times.begin() + static_cast<std::ptrdiff_t>(lowest), times.end());
  return all;
}

std::size_t drawn_bracket(std::size_t brackets, std::uint64_t seed, TrialId trial) {
  if (brackets == 1) return 0;
  double sum = 0;
  for (std::size_t b = 0; b < brackets; ++b) sum += std::exp(-static_cast<double>(b));
  auto left = Random(seed, trial, "asha bracket").unit() * sum;
  std::size_t bracket = 0;
  while (bracket + 1 < brackets && (left -= std::exp(-static_cast<double>(bracket))) >= 0)
    ++bracket;
  return bracket;
}

}  // namespace troupe::tune
