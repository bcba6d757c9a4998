#pragma once

#include <filesystem>
#include <string>

#include <troupe/tune/trial.hpp>

namespace troupe::tune::detail {

/// How a search names the checkpoints in its run's folder: by the path from there, "./trials/3/step-7",
/// so that the run goes on wherever the folder lies by then. Every other checkpoint is named by its path,
/// which never begins with "./", or as CheckpointOrigins says. Trials are told paths. A value.
class CheckpointNames {
 public:
  CheckpointNames() = default;  ///< of a run without a folder: every path is its own name
  /// `run`: an absolute path. Asks the file system where its links lead.
  explicit CheckpointNames(const std::filesystem::path& run);

  /// The name of what a trial reported. Empty for an empty one.
  std::string name_of(const std::string& path) const;
  /// Where the checkpoint of this name lies now.
  std::string path_of(const std::string& name) const;
  /// The same trial, with the paths of its checkpoints in place of their names.
  Trial with_paths(Trial trial) const;

 private:
  std::string run_;
  std::string canonical_run_;  // the same without links, which a program may report
};

}  // namespace troupe::tune::detail
