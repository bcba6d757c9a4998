#include "workdir/workdir.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "config/name.hpp"
#include "config/token.hpp"
#include "words/refuse.hpp"
#include "workdir/folder_cache.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFolderBytes = 200;  // of a path, in a message

std::string workdirs() { return config::state_directory() + "/workdirs"; }

/// Throws Refused where TMPDIR names no folder.
std::string scratch_name() {
  std::error_code failed;
  const auto temporary = fs::temp_directory_path(failed);
  if (!failed) return fmt::format("{}/troupe-run-{}", temporary.string(), ::geteuid());
  const auto* given = std::getenv("TMPDIR");
  refuse(fmt::format(
      "there is no folder for temporary files: {}: make it, or let TMPDIR name another one",
      given == nullptr ? "/tmp is not there"
                       : fmt::format("TMPDIR names '{}', which is no folder",
                                     config::printable(given, kMostFolderBytes))));
}

bool is_own_folder(const std::string& name) {
  struct stat status {};
  return ::lstat(name.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

/// This user's, in the folder for temporary files, where everybody may make folders. Throws Refused.
std::string scratch_parent() {
  const auto name = scratch_name();
  if ((::mkdir(name.c_str(), 0700) == 0 || errno == EEXIST) && is_own_folder(name)) return name;
  refuse(
      fmt::format("'{}' is no folder of this user, and cannot be made ({}): TMPDIR "
                  "may name another place",
                  name, std::strerror(errno)));
}

}  // namespace

bool has_archive(const std::string& digest) { return FolderCache(workdirs()).has(digest); }

std::unique_ptr<IncomingArchive> receive_archive(const std::string& digest) {
  return FolderCache(workdirs()).receive(digest);
}

std::unique_ptr<LiveFolder> receive_folder(const std::string& digest, const std::string& archive,
                                           const std::string& run_id) {
  const FolderCache cache(workdirs());
  if (!archive.empty() && !cache.has(digest)) cache.add(digest, archive);
  remove_left_folders(workdirs());
  return std::make_unique<LiveFolder>(workdirs(), "run-" + run_id, [&](const std::string& folder) {
    cache.unpack(digest, folder);
  });
}

std::unique_ptr<LiveFolder> make_scratch() {
  const auto parent = scratch_parent();
  remove_left_folders(parent);
  std::random_device random;
  return std::make_unique<LiveFolder>(
      parent, fmt::format("{}-{:08x}", ::getpid(), random()), [](const std::string& folder) {
        if (::mkdir(folder.c_str(), 0700) == 0) return;
        refuse(fmt::format("'{}' cannot be made: {}", folder, std::strerror(errno)));
      });
}

void remove_left_of_programs() {
  try {
    if (const auto scratch = scratch_name(); is_own_folder(scratch)) remove_left_folders(scratch);
    remove_left_folders(workdirs());
  } catch (const std::exception&) {  // there is no folder for temporary files, or no home
  }
}

}  // namespace troupe::launch
