#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::tune {

/// A file that grows by whole records, one or several with one write(2): a process that dies loses
/// at most what was not written yet. (A machine that loses power may lose more: nothing is synced.) What a full
/// disk does not take is kept in memory and follows when there is room. Owns the descriptor.
class AppendFile {
 public:
  /// Of what is kept in memory. What comes after that is lost, so that the file ends there and has
  /// no gap.
  static constexpr std::size_t kMostKept = std::size_t{64} << 20;

  /// Of what is to be written later.
  static constexpr std::size_t kMostLater = std::size_t{64} << 10;

  AppendFile() = default;
  /// Makes or continues the file. Throws std::runtime_error with the path and the cause.
  explicit AppendFile(std::filesystem::path path);
  /// Tries once more to write what is kept.
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;

  void append(std::string_view record);
  /// Gives the file another name. Throws std::runtime_error with the path and the cause.
  void rename(std::filesystem::path path);
  /// Writes it with the next append or flush, or once there are kMostLater bytes: for records that
  /// can be had again.
  void append_later(std::string_view record);
  /// Tries to write what is kept. -> true if nothing is left, and nothing was lost.
  bool flush();
  /// Returns once the disk has what was written. -> false, with trouble(), where that failed.
  bool sync();
  /// Of the file, without what is kept.
  std::uintmax_t size() const;
  /// What is not written yet.
  const std::string& kept() const { return kept_; }
  /// "cannot write FILE: No space left on device", of the last try; empty while nothing is kept or
  /// lost.
  const std::string& trouble() const { return trouble_; }

 private:
  std::size_t write(std::string_view text);

  std::filesystem::path path_;
  int fd_ = -1;
  std::string kept_;
  std::string trouble_;
  bool is_overflown_ = false;
};

/// Writes the file beside itself and renames: a reader sees the old one or the new one, whole.
/// With Sync::Yes that holds for a machine that loses power too. Throws std::runtime_error with the
/// path and the cause.
enum class Sync : std::uint8_t { No, Yes };
void replace_file(const std::filesystem::path& path, std::string_view content,
                  Sync sync = Sync::No);

/// Returns once the disk knows the names in the file's folder, as far as it can be told.
void sync_folder(const std::filesystem::path& file);

/// Cuts a file after so many bytes, and after its last whole line within them; one that is not there
/// stays so. -> false where it had fewer. Throws std::runtime_error with the path and the cause.
bool cut_file(const std::filesystem::path& path, std::uintmax_t bytes);

}  // namespace troupe::tune
