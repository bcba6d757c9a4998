#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"

/// What a host and the driver of a gang of programs tell each other. Values that cross processes.
namespace troupe::launch {

/// One rank's program, as its host is to start it.
struct RankOrder {
  Variables variables;  ///< over those of the order
};

/// What a host is to run: the same program for each of its ranks.
struct HostOrder {
  std::vector<std::string> arguments;
  Variables environment;     ///< of the driver's; over those of the host's own process
  std::string directory;     ///< working directory, where no folder is sent
  std::string workdir = {};  ///< digest of the folder that is sent; empty: none
  std::string run_id = {};
  std::vector<RankOrder> ranks = {};
  bool wants_result = false;  ///< the first rank is told by TROUPE_RESULT_FILE where to leave one
};
/// What a program has written: whole lines, but for the last piece before its end.
struct Written {
  int local = 0;  ///< which of the host's ranks
  bool to_error = false;
  std::string text;  ///< ends with a line end
};

/// The end of a rank's program.
struct RankEnd {
  int local = 0;
  int pid = 0;
  int exit_code = 0;
  int signal = 0;
  std::string not_started = {};  ///< why it was not; empty: it was
  double at = 0;                 ///< seconds since 1970, by the host's clock
  bool was_told_to = false;      ///< it ended after stop()
  std::string traceback = {};    ///< what it wrote into its error file; empty: nothing
  std::string limit = {};        ///< which limit sent the signal; empty: none that is known
};

/// Names the file in which rank 0 may leave a result.
inline constexpr const char* kResultVariable = "TROUPE_RESULT_FILE";

struct HostNews {
  /// Programs that have just ended, ahead of `ends`: what they wrote may still wait to be taken.
  std::vector<RankEnd> exits = {};
  std::vector<Written> written = {};
  std::vector<RankEnd> ends = {};
  bool over = false;        ///< all programs have ended, and all they wrote was handed out
  std::string result = {};  ///< with `over`, of rank 0: what it left, if it did
  bool has_result = false;
  std::string why_no_result = {};  ///< what is there cannot be read; empty: it was, or nothing is
};

}  // namespace troupe::launch
