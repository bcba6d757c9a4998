#pragma once

#include <filesystem>
#include <string_view>

namespace troupe::os {

/// Gives a file its content by a PendingFile, so that where this fails, as on a full disk, it has
/// what it had before. A file in a folder that takes no other file is overwritten, and so is what is
/// no file, as a pipe. Throws std::system_error. Any thread.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// Writes a file in its place, which is emptied first. Throws std::system_error. Any thread.
void overwrite_file(const std::filesystem::path& path, std::string_view content);

}  // namespace troupe::os
