#include "files/pending_file.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <random>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "files/durable.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
constexpr std::size_t kMostNameBytes = NAME_MAX;
constexpr int kMostLinks = 40;  // as the system has it

/// What a path names, though it need not be there.
fs::path behind_links(fs::path path) {
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(path, error));
       ++links)
    path = path.parent_path() / fs::read_symlink(path, error);  // of an absolute link: the link
  return path;
}

/// Beside the file, with a name that no file has but by chance.
fs::path beside(const fs::path& file) {
  std::random_device random;
  const auto ending = fmt::format(".{:08x}.tmp", static_cast<std::uint32_t>(random()));
  const auto name = file.filename().string().substr(0, kMostNameBytes - ending.size());
  return file.parent_path() / (name + ending);
}

}  // namespace

PendingFile::PendingFile(const fs::path& path) : final_(behind_links(path)) {
  std::error_code ignored;
  const auto before = fs::status(final_, ignored);
  if (fs::exists(before) && !fs::is_regular_file(before))
    not_done(fmt::format("cannot write {}", in_words(path)), "what is there is no file");
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
  if (out_) ::unlink(unfinished_.c_str());
}

void PendingFile::write(const void* bytes, std::size_t count) {
  const auto* next = static_cast<const char*>(bytes);
  while (count != 0) {
    const auto written = ::write(out_.get(), next, std::min(count, kMostAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

void PendingFile::commit() {
  if (::fsync(out_.get()) != 0) fail(errno);
  if (::rename(unfinished_.c_str(), final_.c_str()) != 0) fail(errno);
  out_.reset();
  const auto folder = final_.parent_path();
  make_durable(folder.empty() ? fs::path(".") : folder);
}

void PendingFile::fail(int error) const {
  not_done(fmt::format("cannot write {}", in_words(final_)), std::strerror(error));
}

}  // namespace troupe::train
