#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/tune/schedulers/asha.hpp>

/// What both variants of ASHA share: where rungs stand, and which bracket a trial is in.
namespace troupe::tune {

/// Throws std::invalid_argument, naming the values, unless max_t >= 1, eta >= 2, grace >= 1,
/// brackets >= 1.
void check(const AshaOptions& options);

/// The t of every rung of bracket 0 below max_t, lowest first. In integers: a quotient of
/// logarithms loses the top rung to rounding.
std::vector<std::int64_t> rung_times(const AshaOptions& options);

/// As rung_times for every bracket: bracket s leaves out the s lowest. Throws
/// std::invalid_argument where there are several, and one of them would have no rung.
std::vector<std::vector<std::int64_t>> bracket_times(const AshaOptions& options);

/// The bracket of a trial, by a softmax over the brackets' numbers of rungs: n, n-1, n-2, ...
std::size_t drawn_bracket(std::size_t brackets, std::uint64_t seed, TrialId trial);

}  // namespace troupe::tune
