#pragma once

#include <filesystem>
#include <string_view>

namespace troupe::os {

/// Gives a file its content by a PendingFile, so that the file keeps its former content where the
/// write fails, as on a full disk. A file whose folder takes no second file is overwritten in its
/// place, and so is a path that names no regular file, as a pipe. Throws std::system_error. Any
/// thread.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// Empties a file and writes the content in its place. Throws std::system_error. Any thread.
void overwrite_file(const std::filesystem::path& path, std::string_view content);

}  // namespace troupe::os
