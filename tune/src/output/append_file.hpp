#pragma once

#include <filesystem>
#include <string_view>

namespace troupe::tune {

/// A file that grows by whole records, each with one write(2): a process that dies loses at most the record in flight.
/// (A machine that loses power may lose more: nothing is synced.) Owns the descriptor.
class AppendFile {
 public:
  AppendFile() = default;
  /// Makes or continues the file. Throws std::runtime_error with the path and the cause, as append() does.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;

  void append(std::string_view record);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// Writes the file beside itself and renames: a reader sees the old one or the new one, whole.
void replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace troupe::tune
