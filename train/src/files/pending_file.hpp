#pragma once

#include <cstddef>
#include <filesystem>

#include "os/unique_fd.hpp"

namespace troupe::train {

/// A file that is being written: <path>.<8 digits>.tmp until commit(), which makes it durable and
/// gives it its name. So there is the whole file, or what was there before; also where several
/// processes write it at once. Removed by the destructor unless it was committed; a killed process
/// leaves it.
///
/// Behind a symbolic link it is the file that the link names. A file that was there passes its
/// permissions on. Throws troupe::Error with the system's reason, also for a path that is there and
/// no file. Used by one thread.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& path);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(const void* bytes, std::size_t count);
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path final_;  // behind symbolic links
  std::filesystem::path unfinished_;
  os::UniqueFd out_;
};

}  // namespace troupe::train
