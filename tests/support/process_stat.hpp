#pragma once

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

#include <poll.h>
#include <sys/types.h>

namespace troupe::test {

struct ProcessStat {
  /// "R", "S", "T" (stopped), "Z" (ended, and not waited for), ...; "": there is no such process.
  std::string state;
  pid_t parent = 0;
};
inline ProcessStat stat_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  ProcessStat stat;
  const auto closing = text.rfind(')');  // the name may hold anything
  if (closing != std::string::npos)
    std::istringstream(text.substr(closing + 1)) >> stat.state >> stat.parent;
  return stat;
}

/// Unlike `kill(pid, 0)`, not for one that has ended and that nobody has waited for.
inline bool runs(pid_t pid) {
  const auto state = stat_of(pid).state;
  return !state.empty() && state != "Z" && state != "X";
}
inline bool gone_within(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (runs(pid)) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace troupe::test
