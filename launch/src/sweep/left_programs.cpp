#include "sweep/left_programs.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/files/file_content.hpp"
#include "os/unique_fd.hpp"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A number that stays this process's own as long as the descriptor is open.
struct Process {
  pid_t pid = 0;
  os::UniqueFd fd;
};

/// The value of a variable in what /proc/PID/environ has; empty: it has none.
std::string_view value_in(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const auto entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(environment.size(), entry.size() + 1));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

bool is_same_folder(const fs::path& one, const fs::path& other) {
  struct stat first = {}, second = {};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Not of one that has ended, which has no environment any more.
bool is_of_trial(const fs::path& process, const std::string& folder) {
  const auto environment = os::read_file(process / "environ").bytes;
  const auto storage = value_in(environment, "TROUPE_CHECKPOINT_DIR");
  if (value_in(environment, "TROUPE_TRIAL").empty() || !storage.starts_with(folder)) return false;
  if (storage.size() > folder.size() && storage[folder.size()] != '/') return false;
  // As the process itself sees it.
  return is_same_folder((process / "root").string() + folder, folder);
}

std::vector<Process> programs_of(const std::string& folder) {
  std::vector<Process> found;
  std::error_code failed;
  for (fs::directory_iterator each("/proc", failed), end; !failed && each != end;
       each.increment(failed)) {
    const auto name = each->path().filename().string();
    pid_t pid = 0;
    const auto [at, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || at != name.data() + name.size() || pid == ::getpid()) continue;
    Process process{pid, os::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))};
    if (process.fd && is_of_trial(each->path(), folder)) found.push_back(std::move(process));
  }
  return found;
}

bool ends_by(const Process& process, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd ended{process.fd.get(), POLLIN, 0};
  return ::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(0, left.count()))) > 0;
}

}  // namespace

std::string trial_folder_of(const std::string& storage) {
  auto folder = fs::path(storage);
  while (folder.has_relative_path() && folder.parent_path().filename() != "trials")
    folder = folder.parent_path();
  return folder.has_relative_path() ? folder.string() : std::string();
}

std::size_t end_left_programs(const std::string& folder, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::size_t ended = 0;
  // Again until there is none: what is found may be starting others meanwhile.
  for (auto found = programs_of(folder); !found.empty(); found = programs_of(folder)) {
    for (const auto& process : found)
      ::syscall(SYS_pidfd_send_signal, process.fd.get(), SIGKILL, nullptr, 0);
    for (const auto& process : found) {
      if (ends_by(process, deadline)) continue;
      throw std::runtime_error(fmt::format(
          "process {} of an earlier attempt of this trial still runs, and SIGKILL has not ended it "
          "within {} s, so that the trial is not started beside it: end that process, then resume",
          process.pid, std::chrono::duration<double>(limit).count()));
    }
    ended += found.size();
  }
  return ended;
}

}  // namespace troupe::launch
