#pragma once

#include <filesystem>
#include <string>

namespace troupe::tune {

/// The absolute path of a folder that somebody named, without ".", ".." and a slash at its end. Links
/// are followed only where the name has "..", which may lead back over one.
std::filesystem::path spelled(const std::filesystem::path& folder);

inline constexpr auto* kJournalFile = "journal.jsonl";

/// The N of a folder with the name that RunFolder::make() gives, run-N; 0: it has another.
int run_number(const std::filesystem::path& folder);

/// The folder of a run, held by the one program that runs it. Move-only; lets the folder go with
/// itself, as the end of the program does, however it ends.
class RunFolder {
 public:
  RunFolder() = default;  ///< none
  /// Makes `storage`/run-1, or the run-N behind the highest that is there, also where lower ones were
  /// removed: a run never writes into another's folder, two at the same time neither. Throws std::runtime_error with the
  /// path and the cause.
  static RunFolder make(const std::filesystem::path& storage);
  /// Holds the folder of an earlier run. Throws std::runtime_error where it is none or has lost its
  /// journal, and, naming who, where another program holds it.
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

}  // namespace troupe::tune
