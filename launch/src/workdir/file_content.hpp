#pragma once

#include <cstdint>
#include <string>

#include "workdir/packed_folder.hpp"

namespace troupe::launch {

/// The most that a file may hold which is sent with a run or fetched from it: as for a folder, all of
/// it is in memory meanwhile.
inline constexpr std::uint64_t kMostFileBytes = kMostWorkdirBytes;

struct FileContent {
  std::string bytes;
  std::string why_not;      ///< it cannot be read, and what to do; empty: it was
  bool is_missing = false;  ///< with `why_not`: there is no such file
};

/// Reads a file that a user named or a program left. Never waits for a writer, and reads neither a
/// device, a pipe or a folder nor more than `most` bytes. Any thread.
FileContent content_of(const std::string& file, std::uint64_t most = kMostFileBytes);

}  // namespace troupe::launch
