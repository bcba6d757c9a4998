#include "host/limits.hpp"

#include <csignal>
#include <optional>

#include <fmt/format.h>
#include <sys/resource.h>

#include "store/types.hpp"

namespace troupe::launch {
namespace {

/// Empty: there is none.
std::optional<rlim_t> soft_limit(pid_t pid, __rlimit_resource which) {
  struct rlimit limit {};
  if (::prlimit(pid, which, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

}  // namespace

std::string limit_that_ended(pid_t pid, int signal) {
  if (signal == SIGXFSZ) {
    if (const auto bytes = soft_limit(pid, RLIMIT_FSIZE))
      return fmt::format("it reached its limit of {} for a file (ulimit -f)",
                         store::format_bytes(*bytes));
  }
  if (signal == SIGXCPU) {
    // With the signal the kernel raises the limit by a second.
    if (const auto seconds = soft_limit(pid, RLIMIT_CPU))
      return fmt::format("it reached its limit of {} s of CPU time (ulimit -t)",
                         *seconds > 1 ? *seconds - 1 : *seconds);
  }
  return {};
}

void take_file_limit_as_error() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace troupe::launch
