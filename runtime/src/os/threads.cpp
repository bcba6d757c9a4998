#include "os/threads.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::os {

bool has_other_threads() {
  struct stat tasks {};
  // ".", "..", and one for each thread.
  return ::stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 3;
}

std::vector<std::string> thread_names() {
  std::vector<std::string> names;
  std::error_code ignored;  // a thread may end while it is looked at
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name)) names.push_back(name);
  }
  return names;
}

std::string describe_threads(const std::vector<std::string>& names) {
  return fmt::format("{} threads ({})", names.size(), fmt::join(names, ", "));
}

std::chrono::nanoseconds computed_here() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace troupe::os
