#include "node/program/program_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "node/failures.hpp"

namespace troupe::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameLength = 64;
constexpr auto kPartPrefix = ".part-";
constexpr auto kAbandonedAfter = std::chrono::hours(24);

[[noreturn]] void fail(std::string message) {
  throw Error(failure_of(Failure::Kind::Program, std::move(message)));
}

os::UniqueFd open_program(const std::string& path) {
  return os::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

/// The time of last use is the file's time of modification, which no mount option turns off.
void touch(const os::UniqueFd& file) { ::futimens(file.get(), nullptr); }

}  // namespace

ProgramCache::ProgramCache(std::string directory, std::uint64_t limit)
    : directory_(std::move(directory)), limit_(limit) {
  std::error_code error;
  fs::create_directories(fs::path(directory_).parent_path(), error);
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
    fail(fmt::format("cannot make the program cache {}: {}", directory_, std::strerror(errno)));
  }
  struct stat status {};
  if (::lstat(directory_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    fail(fmt::format(
        "the program cache {} is not a directory of this user; remove it, or name another",
        directory_));
  }
  if ((status.st_mode & 0077) != 0) ::chmod(directory_.c_str(), 0700);
}

std::optional<CachedProgram> ProgramCache::find(const Digest& digest) {
  CachedProgram program{{}, path_of(digest)};
  program.file = open_program(program.path);
  if (!program.file) return std::nullopt;
  const auto actual = digest_of(program.file.get());
  if (!std::holds_alternative<Digest>(actual) || std::get<Digest>(actual) != digest) {
    ::unlink(program.path.c_str());
    return std::nullopt;
  }
  touch(program.file);
  return program;
}

ProgramCache::Entry::~Entry() {
  if (file_) ::unlink(path_.c_str());
}

std::string ProgramCache::Entry::append(const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  hash_.update(at, size);
  while (size > 0) {
    const auto written = ::write(file_.get(), at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::strerror(errno);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

ProgramCache::Entry ProgramCache::begin() {
  auto path = fmt::format("{}/{}XXXXXX", directory_, kPartPrefix);
  os::UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file)
    fail(fmt::format("cannot write to the program cache {}: {}", directory_, std::strerror(errno)));
  return Entry(std::move(path), std::move(file));
}

CachedProgram ProgramCache::commit(Entry entry, const Digest& expected) {
  const auto actual = entry.hash_.finish();
  if (actual != expected) {
    fail(fmt::format(
        "the program arrived damaged: its SHA-256 is {}, the driver's says {}; start again",
        to_hex(actual), to_hex(expected)));
  }
  CachedProgram program{{}, path_of(expected)};
  if (::fchmod(entry.file_.get(), 0500) != 0 ||
      ::rename(entry.path_.c_str(), program.path.c_str()) != 0) {
    fail(fmt::format("cannot put the program into the cache {}: {}", directory_,
                     std::strerror(errno)));
  }
  // A file that is open for writing cannot be executed, so the way to the same inode is a second
  // open.
  struct stat written {
  }, opened{};
  ::fstat(entry.file_.get(), &written);
  entry.file_.reset();
  program.file = open_program(program.path);
  if (!program.file || ::fstat(program.file.get(), &opened) != 0 ||
      written.st_ino != opened.st_ino) {
    fail(
        fmt::format("the program was removed from the cache {} while it was put there; start again",
                    directory_));
  }
  trim(program.path);
  return program;
}

void ProgramCache::trim(const std::string& keep) {
  struct Old {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Old> entries;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(directory_, error)) {
    const auto name = file.path().filename().string();
    const auto used = file.last_write_time(error);
    if (name.starts_with(kPartPrefix) && used < fs::file_time_type::clock::now() - kAbandonedAfter)
      fs::remove(file, error);
    if (name.size() != kNameLength) continue;
    const auto bytes = file.file_size(error);
    total += bytes;
    if (file.path() != keep) entries.push_back({used, bytes, file.path()});
  }
  std::ranges::sort(entries, {}, &Old::used);
  for (const auto& entry : entries) {
    if (total <= limit_) return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

std::string default_cache_directory() {
  return fmt::format("/var/tmp/troupe-programs-{}", ::geteuid());
}

}  // namespace troupe::node
