#pragma once

#include <filesystem>
#include <string>

namespace troupe::tune {

/// The folder of a run, held by the one program that runs it. Move-only; lets the folder go with
/// itself, as the end of the program does, however it ends.
class RunFolder {
 public:
  RunFolder() = default;  ///< none
  /// Makes `storage`/run-1, or the first of run-2, run-3, ... that is not there yet: a run never
  /// writes into another's folder, two at the same time neither. Throws std::runtime_error with the
  /// path and the cause.
  static RunFolder make(const std::filesystem::path& storage);
  /// Holds the folder of an earlier run. Throws std::runtime_error where it is none, and, naming
  /// who, where another program holds it.
  static RunFolder hold(const std::filesystem::path& folder);

  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit RunFolder(std::filesystem::path path);

  std::filesystem::path path_;
  int lock_ = -1;
};

/// What the run in this folder wrote down, as text.
struct EarlierRun {
  std::string journal = {};
  std::string snapshot = {};  ///< empty: there is none
};
/// Also of a run that goes on: the snapshot is at least as new as the journal. Throws
/// std::runtime_error with the path and the cause.
EarlierRun read_earlier(const std::filesystem::path& folder);

inline constexpr auto* kSnapshotFile = "snapshot.jsonl";

/// The run-N of the storage with the highest N, if it has something left to run; empty: there is
/// none.
std::filesystem::path last_unfinished(const std::filesystem::path& storage);

}  // namespace troupe::tune
