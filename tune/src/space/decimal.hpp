#pragma once

#include <cstdint>
#include <optional>

/// Decimal arithmetic with numbers as people write them. A double stands for the shortest decimal that reads back as
/// it: 0.1 for a tenth, of which it is only near. So -0.3 + 3 * 0.1 is 0, and 3 * 0.1 is 0.3. Pure, the same on every
/// machine. None where the arithmetic does not apply: a number has more than 15 digits, so that nobody wrote it (a
/// third), or the result has more than 38.
namespace troupe::tune {

/// The double that is nearest to first + count * step; a zero is not negative.
std::optional<double> written_sum(double first, std::int64_t count, double step);

/// How many whole steps there are from low to high. Asserts low <= high and step > 0.
std::optional<std::uint64_t> written_steps(double low, double high, double step);

}  // namespace troupe::tune
