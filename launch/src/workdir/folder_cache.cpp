#include "workdir/folder_cache.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "words/refuse.hpp"
#include "workdir/remove_folder.hpp"
#include "workdir/tar.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostArchives = 8;
constexpr std::chrono::hours kPartial{1};  // that is older was left by who was killed

}  // namespace

bool FolderCache::has(const std::string& digest) const {
  return ::access(file(digest).c_str(), R_OK) == 0;
}

std::unique_ptr<IncomingArchive> FolderCache::receive(const std::string& digest) const {
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  return std::make_unique<IncomingArchive>(file(digest));
}

void FolderCache::add(const std::string& digest, const std::string& archive) const {
  const auto incoming = receive(digest);
  incoming->add(archive);
  incoming->finish();
  forget_oldest();
}

void FolderCache::unpack(const std::string& digest, const std::string& target) const {
  std::error_code ignored;
  fs::create_directories(target, ignored);
  ::utimensat(AT_FDCWD, file(digest).c_str(), nullptr, 0);  // used now
  forget_oldest();
  if (tar_status(start_tar({"-xf", file(digest), "-C", target}, -1)) != 0) {
    remove_folder(target);              // what is sent may have folders without the right to write
    fs::remove(file(digest), ignored);  // it may be damaged: it is sent anew
    refuse(fmt::format("the working directory cannot be unpacked into '{}': is its disk full?",
                       target));
  }
}

void FolderCache::forget_oldest() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> archives;
  const auto long_ago = fs::file_time_type::clock::now() - kPartial;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto& path = entry->path();
    const auto written = entry->last_write_time(ignored);
    if (path.extension() == ".tar") archives.emplace_back(written, path);
    if (path.extension().string().starts_with(".partial-") && written < long_ago)
      fs::remove(path, ignored);
  }
  std::ranges::sort(archives, std::greater());
  for (std::size_t i = kMostArchives; i < archives.size(); ++i)
    fs::remove(archives[i].second, ignored);
}

}  // namespace troupe::launch
