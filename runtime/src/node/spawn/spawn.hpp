#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace troupe::node {

/// A program to be run as a child of this process. Its stdin is /dev/null, its signals are at their
/// defaults, it leads a process group of its own and dies with the thread that started it. It may
/// open as many files as this process might at its start.
struct Spawn {
  int program = -1;  ///< descriptor to execute; -1: `path`
  std::string path;
  std::vector<std::string> arguments;    ///< with argv[0]
  std::vector<std::string> environment;  ///< all of it
  std::string directory;                 ///< empty: this process's
  std::vector<int> keep;                 ///< descriptors that it inherits under the same numbers
  int output = -1;                       ///< becomes stdout and stderr; -1: `log`
  std::string log;                       ///< file for stdout and stderr; empty: inherited
  std::uint64_t mark = 0;                ///< how far below this process's (lower_mark); 0: the same
};

struct SpawnFailed {
  std::string why;
};  ///< "cannot execute /a/b: Permission denied"

/// Returns once the program is executed (or could not be): the wait is for the child's exec, not
/// for the program.
std::variant<pid_t, SpawnFailed> spawn(const Spawn& what);

/// This process's environment without the variables named, then `more` ("NAME=value"), which
/// replace their namesakes.
std::vector<std::string> environment_with(const std::vector<std::string>& more,
                                          const std::vector<std::string>& without);

}  // namespace troupe::node
