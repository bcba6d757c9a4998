#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "os/files/pending_file.hpp"

namespace troupe::train {

/// An os::PendingFile that commit() makes durable, and whose errors name the file. Throws
/// troupe::Error with the system's reason, also for a path that is there and no file. Used by one
/// thread.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& path);

  void write(const void* bytes, std::size_t count);
  void commit();

 private:
  std::filesystem::path final_;  // behind symbolic links
  std::optional<os::PendingFile> file_;
};

}  // namespace troupe::train
