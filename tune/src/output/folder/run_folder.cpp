#include "output/folder/run_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <troupe/tune/detail/checks.hpp>

#include "output/folder/earlier_run.hpp"

namespace troupe::tune {
namespace fs = std::filesystem;
namespace {

constexpr int kMostRuns = 100'000;

/// A link to nowhere "exists" for who would make it, and not for who would use it.
std::string dangling_in(const fs::path& folder) {
  fs::path link;
  std::error_code failed;
  for (const auto& part : folder) {
    link /= part;
    if (!fs::is_symlink(link, failed) || fs::exists(link, failed)) continue;
    return fmt::format("{} is a link to {}, which is not there", link.string(),
                       fs::read_symlink(link, failed).string());
  }
  return {};
}

/// -> the folders that were not there, from the outermost on.
std::vector<fs::path> missing_of(fs::path folder) {
  std::vector<fs::path> missing;
  std::error_code failed;
  const auto is_there = [&failed](const fs::path& path) {
    return fs::symlink_status(path, failed).type() != fs::file_type::not_found;
  };
  for (; !folder.empty() && !is_there(folder); folder = folder.parent_path()) {
    if (folder.has_filename()) missing.insert(missing.begin(), folder);
  }
  return missing;
}

[[noreturn]] void refuse_storage(const fs::path& folder, const std::string& why) {
  throw std::runtime_error(
      fmt::format("tune: .storage: cannot make {}: {}; name a folder that this program may write",
                  folder.string(), why));
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "a host without a name";
}

/// Says in the lock's file who has it. For people: the lock itself is the kernel's.
void sign(int lock) {
  const auto who = fmt::format("process {} on {}\n", ::getpid(), host_name());
  if (::ftruncate(lock, 0) != 0 || ::pwrite(lock, who.data(), who.size(), 0) < 0) {
    // A full disk: the next one is told of a holder without a name.
  }
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line.empty() ? "another program" : line;
}

/// The highest N of all run-N, whose lower ones somebody may have removed; 0: there is none.
int highest_number(const fs::path& storage) {
  int highest = 0;
  std::error_code failed;
  for (fs::directory_iterator each(storage, failed), end; !failed && each != end;
       each.increment(failed))
    highest = std::max(highest, run_number(each->path()));
  return highest;
}

}  // namespace

fs::path spelled(const fs::path& folder) {
  auto path = fs::absolute(folder);
  if (std::ranges::count(path, fs::path("..")) > 0) {
    std::error_code failed;
    if (auto found = fs::weakly_canonical(path, failed); !failed) path = std::move(found);
  }
  path = path.lexically_normal();
  return path.has_filename() ? path : path.parent_path();  // "runs/"
}

int run_number(const fs::path& folder) {
  const auto name = folder.filename().string();
  constexpr std::string_view kBefore = "run-";
  if (!name.starts_with(kBefore) || name.starts_with("run-0")) return 0;
  int number = 0;
  const auto* end = name.data() + name.size();
  const auto [at, failed] = std::from_chars(name.data() + kBefore.size(), end, number);
  return failed == std::errc() && at == end && number > 0 ? number : 0;
}

RunFolder::RunFolder(fs::path path) : path_{std::move(path)} {
  const auto file = path_ / ".lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0)
    throw std::runtime_error(
        fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) {
    sign(lock_);
    folder_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return;
  }
  const auto error = errno;
  ::close(std::exchange(lock_, -1));
  if (error != EWOULDBLOCK)
    throw std::runtime_error(
        fmt::format("cannot lock {}: {}", file.string(), std::strerror(error)));
  throw std::runtime_error(fmt::format("{} is being run by {}; end that first, or begin a new run",
                                       path_.string(), first_line(file)));
}

RunFolder::RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  std::swap(folder_, other.folder_);
  return *this;
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
  if (folder_ >= 0) ::close(folder_);
}

bool RunFolder::is_there() const {
  struct stat held = {}, named = {};
  if (folder_ < 0 || ::fstat(folder_, &held) != 0) return true;
  if (::stat(path_.c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  return held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

bool RunFolder::was_removed() const {
  struct stat held = {};
  return folder_ >= 0 && ::fstat(folder_, &held) == 0 && held.st_nlink == 0;
}

namespace {

void make_storage(const fs::path& storage) {
  std::error_code failed;
  fs::create_directories(storage, failed);
  if (!failed && fs::is_directory(storage, failed)) return;
  const auto dangling = dangling_in(storage);
  if (!dangling.empty()) refuse_storage(storage, dangling);
  refuse_storage(storage, failed ? failed.message() : "it is no folder");
}

}  // namespace

RunFolder RunFolder::make(const fs::path& storage) {
  make_storage(storage);
  // Behind all that are there: the newest run is the one with the highest number.
  for (int number = highest_number(storage) + 1; number < kMostRuns; ++number) {
    auto folder = storage / fmt::format("run-{}", number);
    if (::mkdir(folder.c_str(), 0755) == 0) return RunFolder(std::move(folder));
    if (errno != EEXIST) refuse_storage(folder, std::strerror(errno));
  }
  throw std::runtime_error(fmt::format("{} has a run-{} already; give another .storage",
                                       storage.string(), kMostRuns - 1));
}

RunFolder RunFolder::hold(const fs::path& folder) {
  refuse_without_journal(folder);
  if (!fs::exists(folder / kJournalFile)) {
    throw std::runtime_error(
        fmt::format("{} is no run's folder: it has no {}; name one like results/run-1",
                    folder.string(), kJournalFile));
  }
  return RunFolder(folder);
}

namespace detail {

void check_storage(const fs::path& given) {
  const auto storage = spelled(given);
  const auto made = missing_of(storage);
  const auto remove = [&made] {
    std::error_code ignored;
    for (auto each = made.rbegin(); each != made.rend(); ++each) fs::remove(*each, ignored);
  };
  try {
    make_storage(storage);
    const auto probe = storage / fmt::format(".check-{}", ::getpid());
    if (::mkdir(probe.c_str(), 0755) != 0) refuse_storage(storage / "run-1", std::strerror(errno));
    ::rmdir(probe.c_str());
  } catch (...) {
    remove();
    throw;
  }
  remove();
}

fs::path last_run_in(const fs::path& storage, const std::string& sweep_file) {
  return last_run(spelled(storage), sweep_file).folder;
}

std::string holder_of(const fs::path& folder) {
  const auto file = folder / ".lock";
  const int lock = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return {};
  const bool is_held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return is_held ? first_line(file) : std::string();
}

}  // namespace detail

}  // namespace troupe::tune
