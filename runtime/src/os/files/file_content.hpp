#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace troupe::os {

/// The content of a file, or the system's reason why it was not read.
struct FileContent {
  std::string bytes;    ///< empty where the file was not read
  std::string why_not;  ///< as in "Is a directory"; empty: the file was read
};

/// Reads the whole file, however large it is. The opening of a pipe waits for a writer. Any thread.
FileContent read_file(const std::filesystem::path& file);

/// Reads a regular file of at most so many bytes. A larger one, a folder, a pipe or a device is
/// refused with the reason, and none of them is waited for. Any thread.
FileContent read_regular_file(const std::filesystem::path& file, std::uint64_t most);

/// Reads from an open file, from its position to its end. Stops once it has more than `most` bytes.
FileContent read_to_end(int fd, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

}  // namespace troupe::os
