#include "output/run_folder.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "text/json.hpp"

namespace troupe::tune {
namespace fs = std::filesystem;
namespace {

constexpr int kMostRuns = 100'000;
constexpr auto* kJournalFile = "journal.jsonl";

std::string whole_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw std::runtime_error(
        fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
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

}  // namespace

RunFolder::RunFolder(fs::path path) : path_{std::move(path)} {
  const auto file = path_ / ".lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0)
    throw std::runtime_error(
        fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) {
    sign(lock_);
    return;
  }
  const auto error = errno;
  ::close(std::exchange(lock_, -1));
  if (error != EWOULDBLOCK)
    throw std::runtime_error(
        fmt::format("cannot lock {}: {}", file.string(), std::strerror(error)));
  throw std::runtime_error(
      fmt::format("{} is being run by {}; end that first, or begin a new run without .resume",
                  path_.string(), first_line(file)));
}

RunFolder::RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

RunFolder RunFolder::make(const fs::path& storage) {
  std::error_code failed;
  fs::create_directories(storage, failed);
  if (failed)
    throw std::runtime_error(fmt::format("cannot make {}: {}", storage.string(), failed.message()));
  for (int number = 1; number < kMostRuns; ++number) {
    auto folder = storage / fmt::format("run-{}", number);
    if (::mkdir(folder.c_str(), 0755) == 0) return RunFolder(std::move(folder));
    if (errno != EEXIST)
      throw std::runtime_error(
          fmt::format("cannot make {}: {}", folder.string(), std::strerror(errno)));
  }
  throw std::runtime_error(
      fmt::format("{} holds {} runs already; give another .storage", storage.string(), kMostRuns));
}

RunFolder RunFolder::hold(const fs::path& folder) {
  if (!fs::exists(folder / kJournalFile)) {
    throw std::runtime_error(
        fmt::format("{} is no run's folder: it has no {}; name one like results/run-1",
                    folder.string(), kJournalFile));
  }
  return RunFolder(folder);
}

EarlierRun read_earlier(const fs::path& folder) {
  EarlierRun earlier{.journal = whole_text(folder / kJournalFile)};
  if (const auto snapshot = folder / kSnapshotFile; fs::exists(snapshot))
    earlier.snapshot = whole_text(snapshot);
  return earlier;
}

fs::path last_unfinished(const fs::path& storage) {
  fs::path last;
  for (int number = 1; fs::exists(storage / fmt::format("run-{}", number)); ++number)
    last = storage / fmt::format("run-{}", number);
  if (last.empty() || !fs::exists(last / kJournalFile)) return {};
  if (!fs::exists(last / "summary.json")) return last;
  const auto summary = parse(whole_text(last / "summary.json"), "a summary");
  const bool is_over =
      summary.value("ended_early", Json()).is_null() || summary.value("ended_as_asked", false);
  return is_over ? fs::path() : last;
}

}  // namespace troupe::tune
