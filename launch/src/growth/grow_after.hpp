#pragma once

#include <optional>
#include <string>

#include "plan/gang_size.hpp"

namespace troupe::launch {

/// For how long there must be room for more ranks before a gang grows, where nobody said otherwise.
inline constexpr double kGrowAfterS = 30;

/// A value of `--grow-after`, in place of seconds.
inline constexpr const char* kNever = "never";

/// What `--grow-after` says: seconds; none: never. `text`: a number of them, kNever, or empty where
/// nobody said it, so that a gang that cannot grow is not told about it. Throws Refused where it was
/// said of a gang that cannot grow. Pure.
std::optional<double> grow_after_s(const std::string& text, const GangSize& size, int max_restarts);

}  // namespace troupe::launch
