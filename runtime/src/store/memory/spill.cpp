#include "store/memory/spill.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "store/memory/checksum.hpp"

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{8} << 20;
constexpr auto kPartSuffix = ".part";
constexpr int kMostAttempts = 5;

std::string own_prefix() { return fmt::format("troupe-spill-{}-", ::geteuid()); }

os::UniqueFd lock_directory(const std::string& path) {
  os::UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.reset();
  return lock;
}

/// Those whose lock is free belong to nobody.
void remove_abandoned(const std::string& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const auto path = entry.path().string();
    struct stat status {};
    if (!entry.path().filename().string().starts_with(own_prefix()) ||
        ::lstat(path.c_str(), &status) != 0)
      continue;
    if (status.st_uid == ::geteuid() && lock_directory(path)) fs::remove_all(entry.path(), error);
  }
}

/// Calls `piece` for one part of the bytes after the other until it returns an error. -> that
/// error, or 0.
template <class Bytes, class Piece>
int by_pieces(Bytes bytes, Piece piece) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto part = bytes.subspan(done, std::min(kPieceBytes, bytes.size() - done));
    const auto moved = piece(part, static_cast<off_t>(done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno;
    if (moved == 0) return EIO;  // the file is shorter than it was
    done += static_cast<std::size_t>(moved);
  }
  return 0;
}

/// Room is taken first, so that a full disk is seen before anything is written; not every file
/// system can.
int write_whole(int file, std::span<const std::byte> bytes) {
  const bool taken = ::fallocate(file, 0, 0, static_cast<off_t>(bytes.size())) == 0;
  if (!taken && errno != EINVAL && errno != EOPNOTSUPP && errno != EINTR) return errno;
  const int error = by_pieces(
      bytes, [&](auto part, off_t at) { return ::pwrite(file, part.data(), part.size(), at); });
  if (error != 0) return error;
  if (::fdatasync(file) != 0) return errno;
  // The cache would take the memory that is to become free.
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  return 0;
}

}  // namespace

std::variant<SpillDirectory, Refusal> SpillDirectory::open(const std::string& parent,
                                                           std::uint64_t cap_bytes) {
  std::error_code error;
  fs::create_directories(parent, error);
  remove_abandoned(parent);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    auto path = fmt::format("{}/{}XXXXXX", parent, own_prefix());
    if (::mkdtemp(path.data()) == nullptr) {
      return Refusal{
          Refusal::Kind::DiskFull,
          fmt::format("no directory for spilled objects in {}: {}", parent, std::strerror(errno))};
    }
    // Another node that starts now may have taken it for an abandoned one.
    auto lock = lock_directory(path);
    struct stat status {};
    if (lock && ::fstat(lock.get(), &status) == 0 && status.st_nlink > 0) {
      return SpillDirectory(std::move(path), std::move(lock), cap_bytes);
    }
    ::rmdir(path.c_str());
  }
  return Refusal{Refusal::Kind::DiskFull,
                 fmt::format("a directory for spilled objects in {} cannot be locked", parent)};
}

std::optional<std::string> why_no_spilling_to(const std::string& parent) {
  auto folder = fs::path(parent).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // of "/data/spill/"
  std::error_code error;
  const auto above = folder.parent_path();
  if (!above.empty() && !fs::is_directory(above, error)) {
    return fmt::format("there is no folder {}", above.string());
  }
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) return "that is no folder";
  fs::create_directory(folder, error);
  if (error) return error.message();
  auto trial = (folder / (own_prefix() + "XXXXXX")).string();
  if (::mkdtemp(trial.data()) == nullptr) return std::strerror(errno);
  ::rmdir(trial.c_str());
  return std::nullopt;
}

SpillDirectory::~SpillDirectory() {
  if (!lock_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::optional<Refusal> SpillDirectory::write(ObjectId object, std::span<const std::byte> bytes) {
  assert(!entries_.contains(object));
  if (bytes.size() > cap_bytes_ - std::min(cap_bytes_, used_bytes_)) {
    return refuse_write(object, bytes.size(),
                        fmt::format("{} of the {} that may be used there are taken",
                                    format_bytes(used_bytes_), format_bytes(cap_bytes_)));
  }
  const auto name = file_of(object), part = name + kPartSuffix;
  const os::UniqueFd file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  int error = file ? write_whole(file.get(), bytes) : errno;
  if (error == 0 && ::rename(part.c_str(), name.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(part.c_str());
    return refuse_write(object, bytes.size(), std::strerror(error));
  }
  used_bytes_ += bytes.size();
  entries_.emplace(object, Entry{bytes.size(), checksum(bytes)});
  return std::nullopt;
}

Refusal SpillDirectory::refuse_write(ObjectId object, std::uint64_t bytes,
                                     const std::string& why) const {
  struct statvfs disk {};
  std::string room;
  if (::statvfs(path_.c_str(), &disk) == 0) {
    room = fmt::format("; the disk has {} free of {}", format_bytes(disk.f_bavail * disk.f_frsize),
                       format_bytes(disk.f_blocks * disk.f_frsize));
  }
  return {Refusal::Kind::DiskFull,
          fmt::format("object {} ({}) cannot be written to {}: {}{}", to_string(object),
                      format_bytes(bytes), path_, why, room)};
}

std::optional<Refusal> SpillDirectory::read(ObjectId object, std::span<std::byte> into) const {
  const auto& entry = entries_.at(object);
  assert(entry.bytes == into.size());
  const auto name = file_of(object);
  const auto damaged = [&](const std::string& why) {
    return Refusal{Refusal::Kind::Damaged,
                   fmt::format("the copy of object {} ({}) in {} {}", to_string(object),
                               format_bytes(entry.bytes), name, why)};
  };
  const os::UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return damaged(fmt::format("cannot be opened: {}", std::strerror(errno)));
  const int error = by_pieces(
      into, [&](auto part, off_t at) { return ::pread(file.get(), part.data(), part.size(), at); });
  if (error != 0) return damaged(fmt::format("cannot be read: {}", std::strerror(error)));
  const auto found = checksum(into);
  if (found != entry.checksum) {
    return damaged(
        fmt::format("was changed: its XXH3 is {:016x}, not {:016x}", found, entry.checksum));
  }
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  return std::nullopt;
}

void SpillDirectory::remove(ObjectId object) {
  const auto found = entries_.find(object);
  if (found == entries_.end()) return;
  ::unlink(file_of(object).c_str());
  used_bytes_ -= found->second.bytes;
  entries_.erase(found);
}

}  // namespace troupe::store
