#include "session/trainable/debugger.hpp"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <troupe/detail/failure.hpp>

#include "api/bounded.hpp"
#include "log/log.hpp"

namespace troupe::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{100};

bool is_traced() {
  constexpr std::string_view kTracer = "TracerPid:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kTracer))
      return line.find_first_not_of(" \t0", kTracer.size()) != std::string::npos;
  }
  return false;
}

/// As gdb writes it; g++ has another name for namespaces without one.
std::string in_words_of_gdb(std::string_view function) {
  constexpr std::string_view kAnonymous = "{anonymous}";
  std::string name(function);
  for (auto at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous))
    name.replace(at, kAnonymous.size(), "(anonymous namespace)");
  return name;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "its host";
}

/// Of an overload the name is an expression, which gdb does not read.
std::string command(std::string_view function) {
  const bool is_plain = function.find('&') == std::string_view::npos;
  const auto where =
      is_plain ? fmt::format(" -ex \"break '{}'\" -ex continue", in_words_of_gdb(function))
               : std::string();
  return fmt::format("gdb -p {}{}", ::getpid(), where);
}

}  // namespace

void wait_for_debugger(const GangContext& gang, const RunInfo& info, std::string_view function,
                       const std::function<void()>& check) {
  if (info.debugger_rank != gang.rank() || is_traced()) return;
  const auto wait = std::chrono::duration<double>(info.debugger_wait).count();
  // Yama lets a process be traced by its ancestors alone, unless it says otherwise.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  log::info(fmt::format("rank {} of {} waits {:.0f} s for a debugger before {} begins. On {}: {}",
                        gang.rank(), gang.size(), wait, function, host_name(), command(function)));
  const auto began = Clock::now();
  while (!is_traced()) {
    check();
    if (Clock::now() - began >= bounded(info.debugger_wait)) {
      raise({.kind = Failure::Kind::TimedOut,
             .message = fmt::format("no debugger was attached to rank {} (process {} on {}) within "
                                    "{:.1f} s, for which RunOptions::debugger says that it waits",
                                    gang.rank(), ::getpid(), host_name(), wait)});
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace troupe::detail
