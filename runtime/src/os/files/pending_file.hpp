#pragma once

#include <cstddef>
#include <filesystem>

#include "os/unique_fd.hpp"

namespace troupe::os {

/// The file that a path names behind symbolic links, though it need not be there. A link where
/// links lead in a circle.
std::filesystem::path behind_links(std::filesystem::path path);

/// A file that is being written: <path>.<8 digits>.tmp until commit() gives it its name. So there is
/// the whole file, or what was there before; also where several processes write it at once. Removed
/// by the destructor unless it was committed; a killed process leaves it.
///
/// Behind a symbolic link it is the file that the link names. A file that was there passes its
/// permissions on. The path names a file, or nothing yet: what is no file would be replaced. Throws
/// std::system_error. Used by one thread.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& path);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(const void* bytes, std::size_t count);
  /// Has the disk keep what was written.
  void sync();
  void commit();

 private:
  std::filesystem::path final_;  // behind symbolic links
  std::filesystem::path unfinished_;
  UniqueFd out_;
  bool is_committed_ = false;
};

}  // namespace troupe::os
