#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/tune/experiment.hpp>

/// When trials and runs end by what their StopWhen says. Pure.
namespace troupe::tune {

/// How the reason of a trial begins that was stopped since the run was; what ended that follows.
/// Trial::ended_with_run says that it was.
inline constexpr std::string_view kRunEnded = "the run ended: ";

/// Throws std::invalid_argument, naming the option, for criteria that can not be.
void check(const StopWhen& stop);

/// Why a trial, which has just reported, trains no further; none: it does. What StopWhen::reaches
/// says is not looked at: that ends the run.
std::optional<std::string> why_trial_ends(const StopWhen& stop, const Objective& objective,
                                          const Trial& trial, Seconds now);
/// Why a trial, which need not have reported, has had its time; none: it has not, or has no limit.
std::optional<std::string> why_time_is_up(const StopWhen& stop, const Trial& trial, Seconds now);
/// Why the run ends, which has come so far; none: it does not.
std::optional<std::string> why_run_ends(const StopWhen& stop, const RunProgress& progress);

}  // namespace troupe::tune
