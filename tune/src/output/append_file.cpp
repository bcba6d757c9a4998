#include "output/append_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

std::string cannot_write(const std::filesystem::path& path, int error) {
  return fmt::format("cannot write {}: {}", path.string(), std::strerror(error));
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path) : path_{std::move(path)} {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::runtime_error(cannot_write(path_, errno));
}

AppendFile::~AppendFile() {
  if (fd_ < 0) return;
  if (!kept_.empty()) write(kept_);
  ::close(fd_);
}

AppendFile::AppendFile(AppendFile&& other) noexcept { *this = std::move(other); }

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(kept_, other.kept_);
  std::swap(trouble_, other.trouble_);
  std::swap(is_overflown_, other.is_overflown_);
  return *this;
}

/// Writes as much as there is room for, and notes why that is not all. -> how many bytes.
std::size_t AppendFile::write(std::string_view text) {
  std::size_t done = 0;
  int error = 0;
  while (done < text.size() && error == 0) {
    const auto written = ::write(fd_, text.data() + done, text.size() - done);
    if (written >= 0) done += static_cast<std::size_t>(written);
    if (written < 0 && errno != EINTR) error = errno;
  }
  trouble_ = error == 0 ? "" : cannot_write(path_, error);
  return done;
}

void AppendFile::append(std::string_view record) {
  if (flush()) record.remove_prefix(write(record));
  is_overflown_ = is_overflown_ || kept_.size() + record.size() > kMostKept;
  if (!is_overflown_) kept_ += record;
}

void AppendFile::rename(std::filesystem::path path) {
  std::error_code failed;
  std::filesystem::rename(path_, path, failed);
  if (failed)
    throw std::runtime_error(fmt::format("cannot write {}: {}", path.string(), failed.message()));
  path_ = std::move(path);
}

void AppendFile::append_later(std::string_view record) {
  if (!trouble_.empty() || kept_.size() + record.size() > kMostLater) return append(record);
  kept_ += record;
}

bool AppendFile::flush() {
  if (!kept_.empty()) kept_.erase(0, write(kept_));
  if (is_overflown_ && trouble_.empty()) {
    trouble_ = fmt::format(
        "{} ends early: {} MiB waited for room on the disk, and what came after is lost",
        path_.string(), kMostKept >> 20);
  }
  return kept_.empty() && !is_overflown_;
}

std::uintmax_t AppendFile::size() const {
  struct stat status = {};
  return ::fstat(fd_, &status) == 0 ? static_cast<std::uintmax_t>(status.st_size) : 0;
}

/// So that a name in it outlives a machine without power. What cannot be synced is not.
void sync_folder(const std::filesystem::path& file) {
  const int folder = ::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

bool AppendFile::sync() {
  if (::fdatasync(fd_) == 0) return true;
  trouble_ = cannot_write(path_, errno);
  return false;
}

void replace_file(const std::filesystem::path& path, std::string_view content, Sync sync) {
  const auto beside = path.string() + ".new";
  std::error_code failed;
  std::filesystem::remove(beside, failed);
  AppendFile file(beside);
  file.append(content);
  const bool is_written = file.flush() && (sync == Sync::No || file.sync());
  const auto trouble = is_written ? std::string() : file.trouble();
  if (trouble.empty()) std::filesystem::rename(beside, path, failed);
  if (trouble.empty() && !failed) {
    if (sync == Sync::Yes) sync_folder(path);
    return;
  }
  const auto why = trouble.empty()
                       ? fmt::format("cannot write {}: {}", path.string(), failed.message())
                       : trouble;
  std::filesystem::remove(beside, failed);
  throw std::runtime_error(why);
}

bool cut_file(const std::filesystem::path& path, std::uintmax_t bytes) {
  std::error_code failed;
  if (!std::filesystem::exists(path)) return bytes == 0;
  const auto size = std::filesystem::file_size(path, failed);
  auto end = std::min(bytes, failed ? 0 : size);
  std::ifstream in(path, std::ios::binary);
  for (; end > 0; --end) {
    char last = 0;
    in.seekg(static_cast<std::streamoff>(end) - 1);
    if (!in.get(last)) throw std::runtime_error(fmt::format("cannot read {}", path.string()));
    if (last == '\n') break;
  }
  if (!failed && end != size) std::filesystem::resize_file(path, end, failed);
  if (failed)
    throw std::runtime_error(fmt::format("cannot write {}: {}", path.string(), failed.message()));
  return end == bytes;
}

}  // namespace troupe::tune
