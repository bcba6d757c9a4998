#pragma once

#include <functional>
#include <string_view>

#include <troupe/detail/trainable/trial_session.hpp>
#include <troupe/gang_context.hpp>

namespace troupe::detail {

/// Where RunInfo::debugger_rank is this rank: allows any process of this user to trace this one,
/// prints the command that attaches gdb, and returns once a debugger has attached and lets this
/// thread go on. Elsewhere it returns at once. `check`: called about every 100 ms meanwhile; what
/// it throws ends the wait. Throws TimedOut after RunInfo::debugger_wait. Any thread.
void wait_for_debugger(const GangContext& gang, const RunInfo& info, std::string_view function,
                       const std::function<void()>& check);

}  // namespace troupe::detail
