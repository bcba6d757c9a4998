#include "os/files/pending_file.hpp"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <random>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/files/read_write.hpp"

namespace troupe::os {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostNameBytes = NAME_MAX;
constexpr int kMostLinks = 40;  // as the system has it

[[noreturn]] void fail(int error) { throw std::system_error(error, std::generic_category()); }

/// Beside the file, with a name that no file has but by chance.
fs::path beside(const fs::path& file) {
  std::random_device random;
  const auto ending = fmt::format(".{:08x}.tmp", static_cast<std::uint32_t>(random()));
  const auto name = file.filename().string().substr(0, kMostNameBytes - ending.size());
  return file.parent_path() / (name + ending);
}

}  // namespace

fs::path behind_links(fs::path path) {
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(path, error));
       ++links)
    path = path.parent_path() / fs::read_symlink(path, error);  // of an absolute link: the link
  return path;
}

PendingFile::PendingFile(const fs::path& path) : final_(behind_links(path)) {
  std::error_code ignored;
  const auto before = fs::status(final_, ignored);
  if (fs::is_symlink(fs::symlink_status(final_, ignored))) fail(ELOOP);
  // Nobody reads it who may not read what was there.
  const mode_t mode = fs::exists(before) ? 0600 : 0666;
  do {
    unfinished_ = beside(final_);
    out_.reset(::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  } while (!out_ && errno == EEXIST);
  if (!out_) fail(errno);
  if (!fs::exists(before)) return;
  if (::fchmod(out_.get(), static_cast<mode_t>(before.permissions())) != 0) {
    const int error = errno;
    ::unlink(unfinished_.c_str());
    fail(error);
  }
}

PendingFile::~PendingFile() {
  if (!is_committed_) ::unlink(unfinished_.c_str());
}

void PendingFile::write(const void* bytes, std::size_t count) {
  write_all(out_.get(), bytes, count);
}

void PendingFile::sync() {
  if (::fsync(out_.get()) != 0) fail(errno);
}

void PendingFile::commit() {
  if (::close(out_.release()) != 0) fail(errno);
  if (::rename(unfinished_.c_str(), final_.c_str()) != 0) fail(errno);
  is_committed_ = true;
}

}  // namespace troupe::os
