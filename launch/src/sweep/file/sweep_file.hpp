#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <troupe/tune/detail/search.hpp>

#include "plan/needs.hpp"
#include "plan/plan.hpp"

namespace troupe::launch {

/// A sweep, as a TOML file describes it: docs/sweeps.md has all keys.
struct SweepFile {
  std::string file;
  std::vector<std::string> command;
  std::string
      directory;  ///< of the file: where the program runs, and what paths in it are relative to
  std::string
      workdir;  ///< a folder that is sent to the nodes, to be there in its place; empty: none
  tune::detail::Plan plan;
  Variables variables;
  std::string pattern;       ///< of reports
  std::string event_folder;  ///< with TensorBoard's files, from which reports are read; empty: none
  bool has_rungs = false;    ///< its scheduler has
  std::size_t repeats = 1;   ///< trials of each configuration that the searcher proposes
  bool prints = false;
  double grace_s = 5;
  RankNeeds each;    ///< what each rank needs
  int per_node = 0;  ///< ranks on each node, each node's together; 0: as they fit
  Strategy strategy = Strategy::Pack;
  // "FILE:LINE:COLUMN" of what may not be on this machine
  std::string command_at;
  std::string workdir_at;
  std::string storage_at;
};

/// Throws Refused, "FILE:LINE:COLUMN: WHY", for what is no TOML, no key, of another type, or missing;
/// for values that cannot be together, with the key.
SweepFile read_sweep(const std::string& file);

}  // namespace troupe::launch
