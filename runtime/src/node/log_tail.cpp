#include "node/log_tail.hpp"

#include <algorithm>
#include <deque>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/unique_fd.hpp"
#include "transport/frame.hpp"

namespace troupe::node {
namespace {

constexpr std::uint64_t kTailBytes = 4096;
constexpr std::size_t kMostLines = 3;
constexpr std::size_t kLongestLine = 300;

std::uint64_t size_of(const std::string& file) {
  struct stat status {};
  return !file.empty() && ::stat(file.c_str(), &status) == 0
             ? static_cast<std::uint64_t>(status.st_size)
             : 0;
}

std::string last_bytes(const std::string& file, std::uint64_t start) {
  const auto size = size_of(file);
  os::UniqueFd log(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!log || size <= start) return {};
  std::string text(std::min(size - start, kTailBytes), '\0');
  const auto got =
      ::pread(log.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

LogTail::LogTail(std::string file) : file_(std::move(file)), start_(size_of(file_)) {}

std::string LogTail::quote() const {
  if (file_.empty()) return {};
  std::deque<std::string> last;
  std::istringstream lines(last_bytes(file_, start_));
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    last.push_back(transport::printable(line, kLongestLine));
    if (last.size() > kMostLines) last.pop_front();
  }
  return last.empty()
             ? name()
             : fmt::format("; its log, {}, ends with: '{}'", file_, fmt::join(last, " / "));
}

std::string LogTail::name() const {
  return file_.empty() ? std::string() : fmt::format("; its log is {}", file_);
}

}  // namespace troupe::node
