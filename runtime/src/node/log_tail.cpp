#include "node/log_tail.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "os/files/file_size.hpp"
#include "os/unique_fd.hpp"
#include "transport/frame.hpp"

namespace troupe::node {
namespace {

constexpr std::uint64_t kTailBytes = 4096;
constexpr std::size_t kMostLines = 10;
constexpr std::size_t kLongestLine = 300;
constexpr std::size_t kQuotedBytes = 1500;  // of all lines: the head remembers many ends

std::string last_bytes(const std::string& file, std::uint64_t start) {
  const auto size = os::file_size(file).value_or(0);
  if (size < start) start = 0;  // it was shortened
  os::UniqueFd log(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!log || size <= start) return {};
  std::string text(std::min(size - start, kTailBytes), '\0');
  const auto got =
      ::pread(log.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

LogTail::LogTail(std::string file)
    : file_(std::move(file)), start_(os::file_size(file_).value_or(0)) {}

std::string LogTail::quote() const {
  if (file_.empty()) return {};
  std::deque<std::string> last;
  std::size_t bytes = 0;
  std::istringstream lines(last_bytes(file_, start_));
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    last.push_back(transport::printable(line, kLongestLine));
    bytes += last.back().size();
    while (last.size() > kMostLines || bytes > kQuotedBytes) {
      bytes -= last.front().size();
      last.pop_front();
    }
  }
  return last.empty()
             ? name()
             : fmt::format("; its log, {}, ends with: '{}'", file_, fmt::join(last, " / "));
}

std::string LogTail::name() const {
  return file_.empty() ? std::string() : fmt::format("; its log is {}", file_);
}

}  // namespace troupe::node
