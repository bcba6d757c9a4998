#pragma once

#include <filesystem>
#include <string>

namespace troupe::tune {

/// The absolute path of a folder that somebody named, without ".", ".." and a slash at its end. Links
/// are followed only where the name has "..", which may lead back over one.
std::filesystem::path spelled(const std::filesystem::path& folder);

/// The folder of a run, held by the one program that runs it. Move-only; lets the folder go with
/// itself, as the end of the program does, however it ends.
class RunFolder {
 public:
  RunFolder() = default;  ///< none
  /// Makes `storage`/run-1, or the run-N behind the highest that is there, also where lower ones were
  /// removed: a run never writes into another's folder, two at the same time neither. Throws std::runtime_error with the
  /// path and the cause.
  static RunFolder make(const std::filesystem::path& storage);
  /// Holds the folder of an earlier run. Throws std::runtime_error where it is none, and, naming
  /// who, where another program holds it.
  static RunFolder hold(const std::filesystem::path& folder);

  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  /// Whether the path still leads to this folder: somebody may have removed it, and another run may
  /// have taken its name. True where that cannot be told. Asks the file system.
  bool is_there() const;
  /// Whether this folder was removed. Asks its descriptor alone, and so may be asked at each event.
  bool was_removed() const;

 private:
  explicit RunFolder(std::filesystem::path path);

  std::filesystem::path path_;
  int lock_ = -1;
  int folder_ = -1;  // kept open, so that no other folder can be taken for it
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

/// An earlier run in a storage.
struct LastRun {
  std::filesystem::path folder = {};  ///< empty: there is none
  bool is_over = false;               ///< it has nothing left to run
  std::string ended_as_asked = {};    ///< why, where its StopWhen ended it
};
/// The run-N with the highest N of those that have begun. Throws std::runtime_error, with the file and the place in it, where
/// its summary is damaged.
LastRun last_run(const std::filesystem::path& storage);

/// The folder itself where it is a run's, else the run-N in it with the highest N of those that have
/// begun. Throws std::runtime_error where there is none.
std::filesystem::path run_in(const std::filesystem::path& folder);

/// The command of `troupe tune` that goes on with the run in `folder`, for the sweep of
/// `sweep_file`. It names the folder unless that is the last run in `storage`, which the command
/// goes on with by itself. Empty where `sweep_file` is: a program's own search.
std::string resume_command(const std::string& sweep_file, const std::filesystem::path& storage,
                           const std::filesystem::path& folder);

}  // namespace troupe::tune
