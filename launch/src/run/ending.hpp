#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/attempt.hpp"

namespace troupe::launch {

/// How a run has ended, for people and for programs.
struct Ending {
  int status = 0;
  int ranks = 0;
  int nodes = 0;
  int restarts = 0;
  int max_restarts = 0;
  int growths = 0;
  double seconds = 0;
  std::string stopped_by = {};  ///< "SIGINT", "--timeout"; empty: by itself
  std::optional<FirstFailure> failure = {};
  std::string not_formed = {};               ///< why no rank was started; empty: they were
  std::string failed_node = {};              ///< its name
  std::string failed_address = {};           ///< where other nodes reached it
  std::vector<std::string> last_lines = {};  ///< of the rank that failed
};

/// Which rank failed, where, how, and what it said last.
std::string in_words(const Ending& ending);
/// The last line. `quiet`: empty where nothing went wrong.
std::string last_line(const Ending& ending, bool quiet);
/// As JSON; its fields are in docs/run.md. Throws Refused where the file cannot be written.
void write_summary(const std::string& file, const Ending& ending);

}  // namespace troupe::launch
